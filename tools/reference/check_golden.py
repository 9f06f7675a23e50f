#!/usr/bin/python3
"""check_golden.py DIR...: logits, losses and gradients of this implementation against golden files
(DIR/config.json, model.safetensors, golden.safetensors)."""

import sys
from pathlib import Path

import torch

import objective
import safetensors_file
from model import Olmo3, Shape


def relative(a, b):
    return ((a - b).double().norm() / b.double().norm().clamp_min(1e-30)).item()


def check(directory):
    weights = {n: w.float().requires_grad_() for n, w in safetensors_file.read(directory).items()}
    golden = safetensors_file.read(Path(directory) / "golden.safetensors")
    model = Olmo3(Shape.read(directory), weights)
    tokens = golden["input_ids"].long()
    logits = model.logits(tokens)
    wanted = golden["logits"]
    distance = (logits[:, -wanted.shape[1] :] - wanted).abs().max().item()
    line = f"{directory}: logits {distance:.2e}"
    worst = distance
    if "loss_ce" in golden:
        targets = objective.targets_of(tokens)
        targets[:, :-1][golden["target_mask"] == 0] = objective.IGNORED
        cross_entropy, z_loss = objective.loss(logits, targets, 1e-5)
        (cross_entropy + z_loss).backward()
        losses = max(
            abs(cross_entropy.item() - golden["loss_ce"].item()),
            abs(z_loss.item() - golden["loss_z"].item()),
        )
        gradients = max(relative(w.grad, golden[f"grad.{n}"]) for n, w in weights.items())
        line += f", losses {losses:.2e}, gradients {gradients:.2e} relative"
        worst = max(worst, losses, gradients)
    print(line)
    return worst


if __name__ == "__main__":
    torch.set_num_threads(2)
    if max(check(directory) for directory in sys.argv[1:]) > 1e-4:
        sys.exit("error: a golden value is missed by more than 1e-4")
