#!/usr/bin/python3
"""Trains a recipe in plain PyTorch and writes a reference bundle.

The model, optimiser, loss and data order are written from their published definitions and share
nothing with Lockstep but the files: recipe, token files, initial weights. A second run of the same
command goes on where the first was stopped."""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

import objective
import optimiser
import recipe
import safetensors_file
from bundle import Bundle
from data import Batches, Instances
from model import BREAKS, Olmo3, Shape
from progress import clock, show

STATE_EVERY = 20  # steps


class Training:
    def __init__(self, options, values):
        self.options, self.values = options, values
        self.bundle = Bundle(options.out)
        self.steps = values["train.steps"]
        shape = Shape.read(options.init)
        self.config = (Path(options.init) / "config.json").read_text()
        state = self.bundle.load_state()
        start = {} if state else self.start()
        source = state or start
        self.weights = {
            name[2:]: w.float().requires_grad_() for name, w in source.items() if name[:2] == "w."
        }
        self.optimiser = optimiser.AdamW(
            self.weights, values["optim.beta1"], values["optim.beta2"], values["optim.eps"],
            values["optim.weight_decay"],
        )  # fmt: skip
        self.window = optimiser.Window(
            values["optim.skip_step.window"], values["optim.skip_step.sigma"],
            values["optim.skip_step.enabled"],
        )  # fmt: skip
        if "numbers" in source:
            self.optimiser.taken = int(source["numbers"][1])
            for name in self.weights:
                self.optimiser.m[name] = source[f"m.{name}"]
                self.optimiser.v[name] = source[f"v.{name}"]
        self.step = 0
        if state:
            self.step = int(state["numbers"][0])
            self.window.losses = state["losses"].tolist()
            self.window.norms = state["norms"].tolist()
        broken = options.broken if options.broken in BREAKS else None
        self.model = Olmo3(shape, self.weights, options.precision, broken)
        instances = Instances(
            values["data.mix"], values["data.base_dir"], values["data.token_type"],
            values["data.sequence_length"],
        )  # fmt: skip
        self.batch = values["batch.instances"]
        self.batches = Batches(
            instances, self.batch, values["data.seed"], values["data.filter.enabled"],
            options.repeated if options.broken == "repeat-data" else 0,
        )  # fmt: skip

    def start(self):
        """Weights of --init, and where another bundle is gone on from also its moments."""
        if self.options.moments:
            state = Bundle(self.options.moments).load_state()
            return {k: v for k, v in state.items() if k not in ("losses", "norms")}
        return {f"w.{name}": w for name, w in safetensors_file.read(self.options.init).items()}

    def train(self):
        self.bundle.directory.mkdir(parents=True, exist_ok=True)
        self.bundle.cut_metrics(self.step)
        first, begin = self.step, time.monotonic()
        with open(self.bundle.metrics, "a", buffering=1) as metrics:
            while self.step < self.steps:
                record = self.one_step()
                metrics.write(json.dumps(record) + "\n")
                self.say(record, (time.monotonic() - begin) / (self.step - first))
                if self.step in self.options.checkpoints or self.step == self.steps:
                    tokenizer = self.values["data.tokenizer_file"]
                    self.bundle.save_checkpoint(self.step, self.weights, self.config, tokenizer)
                if self.step % STATE_EVERY == 0 or self.step == self.steps:
                    self.bundle.save_state(self.step, self.weights, self.optimiser, self.window)
        print(file=sys.stderr)

    def one_step(self):
        step, values = self.step + 1, self.values
        tokens, kept = self.batches(step)
        logits = self.model.logits(tokens)
        cross_entropy, z_loss = objective.loss(
            logits, objective.targets_of(tokens, kept), values["train.z_loss"]
        )
        (cross_entropy + z_loss).backward()
        norm = optimiser.gradient_norm(self.weights)
        lr = optimiser.learning_rate(
            values["schedule.kind"], step, self.steps, values["optim.lr"],
            values["schedule.warmup_steps"], values["schedule.final_fraction"],
        )  # fmt: skip
        taken = self.window.takes(cross_entropy.item(), norm)
        if taken:
            self.optimiser.step(lr, optimiser.clip_scale(norm, values["optim.grad_clip"]))
        else:
            self.optimiser.forget_gradients()
        self.step = step
        return {
            "step": step, "loss": cross_entropy.item() + z_loss.item(),
            "ce_loss": cross_entropy.item(), "z_loss": z_loss.item(), "grad_norm": norm, "lr": lr,
            "tokens": step * tokens.numel(), "skipped": not taken,
        }  # fmt: skip

    def say(self, record, seconds):
        left = (self.steps - self.step) * seconds
        speed = self.batch * self.values["data.sequence_length"] / seconds
        show(f"step {self.step} of {self.steps}, loss {record['loss']:.4f}, {speed:.0f} tokens/s, "
             f"{clock(left)} left")  # fmt: skip

    def finish(self):
        options, values = self.options, self.values
        self.bundle.describe({
            "name": values["run.name"],
            "producer": f"torch {torch.__version__}",
            "precision": options.precision,
            "recipe": values | {"break": options.broken or "none"},
            "steps": self.steps,
            "tokens_per_step": self.batch * values["data.sequence_length"],
            "stages": [{"name": values["run.name"], "first_step": 1, "last_step": self.steps}],
        })  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("-o", "--out", required=True, help="the bundle to make")
    parser.add_argument("--init", required=True, help="Hugging Face directory to start from")
    parser.add_argument("--moments", help="go on from this bundle's last weights and moments, as a "
                        "second stage does")  # fmt: skip
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--checkpoints", type=lambda text: [int(x) for x in text.split(",")],
                        default=[], help="steps, with commas; the last is always one")  # fmt: skip
    parser.add_argument("--break", dest="broken", choices=(*BREAKS, "repeat-data"))
    parser.add_argument("--repeated", type=int, help="instances that repeat-data goes through")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    values = recipe.read(options.recipe, options.overrides)
    training = Training(options, values)
    if not training.bundle.finished():
        training.train()
        training.finish()


if __name__ == "__main__":
    main()
