#!/usr/bin/python3
"""The two PyTorch models are the same function: equal loss and gradients from equal weights, so that
the faster one is a fair peer. Exits with 1 when they are not."""

import sys

import torch

import torch_plain
import torch_tuned
from shapes import Shape

# Largest relative difference of a gradient: of one rounding, of many.
BOUNDS = {"fp32": 1e-5, "bf16": 0.05}


def copy_weights(shape, plain, tuned):
    """Gives `tuned` the weights of `plain`; pairs of (tuned's, plain's) gradients' makers."""
    dim = shape.width // shape.heads
    # Row 2i of a tuned head is row i of a plain one, 2i + 1 is i + dim / 2.
    order = torch.arange(shape.width).view(shape.heads, 2, dim // 2).transpose(1, 2).flatten()
    pairs = [
        (tuned.embedding, lambda of: of(plain.embedding.weight)),
        (tuned.head, lambda of: of(plain.head.weight)),
        (tuned.norm, lambda of: of(plain.norm.gain)),
    ]
    for a, b in zip(plain.blocks, tuned.blocks):
        pairs += [
            (b["qkv"], lambda of, a=a: torch.cat(
                [of(a.q.weight)[order], of(a.k.weight)[order], of(a.v.weight)])),
            (b["o"], lambda of, a=a: of(a.o.weight)),
            (b["gate_up"], lambda of, a=a: torch.cat([of(a.gate.weight), of(a.up.weight)])),
            (b["down"], lambda of, a=a: of(a.down.weight)),
            (b["q_norm"], lambda of, a=a: of(a.q_norm.gain)[order]),
            (b["k_norm"], lambda of, a=a: of(a.k_norm.gain)[order]),
            (b["attention_norm"], lambda of, a=a: of(a.attention_norm.gain)),
            (b["mlp_norm"], lambda of, a=a: of(a.mlp_norm.gain)),
        ]  # fmt: skip
    with torch.no_grad():
        for mine, other in pairs:
            mine.copy_(other(lambda weight: weight))
    return pairs


def main():
    torch.manual_seed(0)
    shape = Shape("", 4, 64, 2, 96, 256, 32, 2, 96)
    torch_tuned.QUERIES = 40  # so that blocks of many forms occur
    good = True
    for precision, bound in BOUNDS.items():
        plain, tuned = (m.Model(shape, precision) for m in (torch_plain, torch_tuned))
        with torch.no_grad():
            for weight in plain.parameters():
                weight.mul_(3) if weight.dim() == 2 else weight.add_(torch.randn_like(weight) / 10)
        pairs = copy_weights(shape, plain, tuned)
        tokens = torch.randint(0, shape.vocabulary, (shape.batch, shape.length))
        losses = [model.loss(tokens) for model in (plain, tuned)]
        for loss in losses:
            loss.backward()
        worst = max(
            ((mine.grad - other(lambda w: w.grad)).norm() / mine.grad.norm()).item()
            for mine, other in pairs
        )
        print(f"{precision}: losses {losses[0].item():.6f} and {losses[1].item():.6f}, gradients "
              f"differ by {worst:.2g} at most (bound {bound})")  # fmt: skip
        good = good and worst <= bound and abs(losses[0].item() - losses[1].item()) <= bound
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
