#!/usr/bin/python3
"""Evaluates checkpoints of a reference bundle: held-out loss, tasks, token KL from another bundle,
and logits of a few held-out windows. What is there already is not done again."""

import argparse
import json
import sys
from pathlib import Path

import torch

import heldout
import safetensors_file
import score_tasks
import token_kl
from bpe import Tokenizer
from bundle import Bundle, write_text
from data import held_out
from opened_model import open_model
from progress import Progress


class Evaluation:
    def __init__(self, options):
        self.options = options
        self.bundle = Bundle(options.bundle)
        description = self.bundle.read_description()
        self.name, self.producer = description["name"], description["producer"]
        self.precision = description["precision"]
        self.recipe = description["recipe"]
        self.broken = self.recipe["break"]
        self.length = self.recipe["data.sequence_length"]
        self.documents = held_out(
            options.mix, options.base_dir, self.recipe["data.token_type"], self.length,
            options.max_documents,
        )  # fmt: skip

    def model(self, step):
        return open_model(
            self.bundle.checkpoint(step), self.precision, self.broken,
            self.recipe["model.vocab_size"],
        )  # fmt: skip

    def reference(self, step):
        other = Bundle(self.options.kl)
        description = other.read_description()
        recipe = description["recipe"]
        return open_model(
            other.checkpoint(step), description["precision"], recipe["break"],
            recipe["model.vocab_size"],
        )  # fmt: skip

    @torch.no_grad()
    def run(self, step):
        path = self.bundle.evaluation(step)
        if not path.exists():
            document = self.evaluate(step)
            write_text(path, json.dumps(document, indent=1) + "\n")
        if self.options.windows and not self.bundle.logits(step).exists():
            self.write_logits(step)

    def evaluate(self, step):
        model = self.model(step)
        path = self.bundle.checkpoint(step) / "tokenizer.json"
        tokenizer = Tokenizer(path) if path.exists() else None
        lengths = tokenizer.byte_lengths(model.columns) if tokenizer else [0] * model.columns
        document = {
            "format": "lockstep-evaluation", "version": 1,
            "model": {"name": self.name, "step": step, "precision": self.precision,
                      "producer": self.producer},
            "heldout": heldout.evaluate(
                model, self.documents, lengths, self.length, Progress(f"step {step}: held-out loss")
            ),
        }  # fmt: skip
        if self.options.data:
            document["tasks"] = [
                score_tasks.score(
                    model, tokenizer, task, self.options.data,
                    Progress(f"step {step}: {task}"),
                )
                for task in score_tasks.TASKS
            ]  # fmt: skip
        if self.options.kl:
            document["kl"] = token_kl.evaluate(
                self.reference(step), model, self.documents,
                str(Path(self.options.kl).resolve()), Progress(f"step {step}: token KL"),
            )  # fmt: skip
        return document

    def write_logits(self, step):
        """Of the first windows that are as long as an instance, one behind the other."""
        long = [d for d in self.documents if len(d.tokens) == self.length]
        tokens = torch.stack([d.tokens for d in long[: self.options.windows]])
        path = self.bundle.logits(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        logits = self.model(step).logits(tokens)
        safetensors_file.write(path, {"input_ids": tokens, "logits": logits})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("steps", nargs="+", type=int)
    parser.add_argument("--mix", required=True, help="manifest of held-out token files")
    parser.add_argument("--base-dir", default="")
    parser.add_argument("--max-documents", type=int, default=0, help="of each domain; 0: all")
    parser.add_argument("--data", help="directory of the tasks' data sets; none: no tasks")
    parser.add_argument("--kl", metavar="BUNDLE", help="token KL from this bundle, same steps")
    parser.add_argument("--windows", type=int, default=0, help="held-out windows to keep logits of")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    evaluation = Evaluation(options)
    for step in options.steps:
        evaluation.run(step)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
