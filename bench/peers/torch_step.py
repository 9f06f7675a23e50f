#!/usr/bin/python3
"""Times training steps (loss, backward, clipping, AdamW) of a shape in PyTorch; prints JSON.

bench/peers/torch_step.py 190m --model tuned --precision bf16

The allocator is what the environment says; compare_torch.py sets it."""

import argparse
import json
import math
import os
import statistics
import time

import torch

import torch_plain
import torch_tuned
from shapes import SHAPES

BETA1, BETA2, ADAM_EPS, DECAY, LR, CLIP = 0.9, 0.95, 1e-8, 0.1, 1e-6, 1.0
CHUNK = 1 << 17  # weights whose state stays in the cache for all passes over it


class ChunkedAdamW:
    """AdamW with all passes over a chunk before the next one."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.m = [torch.zeros_like(p) for p in self.parameters]
        self.v = [torch.zeros_like(p) for p in self.parameters]
        self.room = torch.empty(CHUNK)
        self.steps = 0

    @torch.no_grad()
    def step(self, scale):
        self.steps += 1
        rate = LR / (1 - BETA1**self.steps)
        correction = math.sqrt(1 - BETA2**self.steps)
        for p, m, v in zip(self.parameters, self.m, self.v):
            arrays = (p.view(-1), p.grad.reshape(-1), m.view(-1), v.view(-1))
            for w, g, m_part, v_part in zip(*(array.split(CHUNK) for array in arrays)):
                if scale < 1:
                    g.mul_(scale)
                m_part.lerp_(g, 1 - BETA1)
                v_part.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
                root = torch.sqrt(v_part, out=self.room[: len(w)])
                root.add_(ADAM_EPS * correction)
                w.mul_(1 - LR * DECAY).addcdiv_(m_part, root, value=-rate * correction)


class ForeachAdamW:
    """PyTorch's own."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.adamw = torch.optim.AdamW(
            self.parameters, lr=LR, betas=(BETA1, BETA2), eps=ADAM_EPS, weight_decay=DECAY,
            foreach=True,
        )  # fmt: skip

    @torch.no_grad()
    def step(self, scale):
        if scale < 1:
            torch._foreach_mul_([p.grad for p in self.parameters], scale)
        self.adamw.step()


MODELS = {"plain": (torch_plain.Model, ForeachAdamW), "tuned": (torch_tuned.Model, ChunkedAdamW)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--model", choices=MODELS, default="tuned")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--steps", type=int, default=3, help="timed, after one that is not (3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    shape = SHAPES[options.shape]
    make_model, make_optimiser = MODELS[options.model]
    model = make_model(shape, options.precision)
    optimiser = make_optimiser(model.parameters())
    # Ids as frequent as in text, by Zipf's law, as `lockstep bench step` makes them.
    draws = torch.rand(shape.batch, shape.length)
    tokens = (shape.vocabulary**draws - 1).long().clamp_(0, shape.vocabulary - 1)
    seconds, parts, losses = [], [], []
    for _ in range(options.steps + 1):
        times = [time.monotonic()]
        loss = model.loss(tokens)
        losses.append(loss.item())
        times.append(time.monotonic())
        loss.backward()
        times.append(time.monotonic())
        gradients = [p.grad for p in model.parameters()]
        norm = math.sqrt(sum(torch.linalg.vector_norm(g).item() ** 2 for g in gradients))
        optimiser.step(min(1.0, CLIP / (norm + 1e-6)))
        model.zero_grad(set_to_none=True)
        times.append(time.monotonic())
        seconds.append(times[-1] - times[0])
        parts.append([after - before for before, after in zip(times, times[1:])])
    middle = statistics.median(seconds[1:])
    forward, backward, update = (statistics.median(part) for part in zip(*parts[1:]))
    print(json.dumps({
        "tokens_per_s": shape.tokens / middle, "step_seconds": seconds[1:],
        "forward_seconds": forward, "backward_seconds": backward, "optimiser_seconds": update,
        "losses": losses, "norm": norm, "threads": options.threads, "torch": torch.__version__,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
