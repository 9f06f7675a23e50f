"""A reference bundle on disk (docs/formats.md, "Reference bundle"), and the state between
two processes of one training."""

import json
import os
import shutil
from pathlib import Path

import torch

import safetensors_file


def step_name(step):
    return f"step-{step:08d}"


def write_text(path, text):
    """The file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text)
    os.replace(unfinished, path)


class Bundle:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.metrics = self.directory / "metrics.jsonl"
        self.description = self.directory / "bundle.json"

    def finished(self):
        return self.description.exists()

    def describe(self, fields):
        head = {"format": "lockstep-bundle", "version": 1}
        write_text(self.description, json.dumps(head | fields, indent=1) + "\n")

    def read_description(self):
        return json.loads(self.description.read_text())

    def checkpoint(self, step):
        return self.directory / "checkpoints" / step_name(step)

    def evaluation(self, step):
        return self.directory / "evals" / f"{step_name(step)}.json"

    def logits(self, step):
        return self.directory / "logits" / f"{step_name(step)}.safetensors"

    def save_checkpoint(self, step, weights, config, tokenizer):
        """`config` is the text of config.json."""
        target = self.checkpoint(step)
        unfinished = target.with_name(target.name + ".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        safetensors_file.write(unfinished / "model.safetensors", weights)
        (unfinished / "config.json").write_text(config)
        if tokenizer:
            shutil.copyfile(tokenizer, unfinished / "tokenizer.json")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(unfinished, target)

    # What a training goes on from: weights, moments, counters, and the lines of metrics until then.

    def save_state(self, step, weights, optimiser, window):
        tensors = {f"w.{n}": w for n, w in weights.items()}
        tensors |= {f"m.{n}": m for n, m in optimiser.m.items()}
        tensors |= {f"v.{n}": v for n, v in optimiser.v.items()}
        numbers = [step, optimiser.taken]
        tensors["numbers"] = torch.tensor(numbers, dtype=torch.int64)
        tensors["losses"] = torch.tensor(window.losses, dtype=torch.float64)
        tensors["norms"] = torch.tensor(window.norms, dtype=torch.float64)
        safetensors_file.write(self.directory / "state.safetensors", tensors)

    def load_state(self):
        """None when there is none."""
        path = self.directory / "state.safetensors"
        return safetensors_file.read(path) if path.exists() else None

    def cut_metrics(self, step):
        """Drops the lines of steps after `step`."""
        lines = self.metrics.read_text().splitlines() if self.metrics.exists() else []
        write_text(self.metrics, "".join(line + "\n" for line in lines[:step]))
