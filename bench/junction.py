#!/usr/bin/env python3
"""A run that changes its instruction set between two stages, beside one that never does: loss,
tokens a second and MFU on both sides of the junction, and held-out loss of both at the end.

bench/junction.py [--first avx2] [--second avx512_bf16] [KEY=VALUE...]

Stage 2 starts from stage 1's weights and moments, on another order of the data. Two instruction sets
round differently, and training makes much of little; the scale for that is what other initial
weights do to the same run, measured here too: the change may do half of it at most."""

import json
import shutil
import statistics
import sys
from pathlib import Path

import rounds

sys.path.insert(0, str(rounds.ROOT / "tools/demo"))
import demo
import text

SHARE = 0.5  # of what other initial weights change
RECIPE = rounds.ROOT / "recipes/demo.toml"


class Runs:
    """Two-stage runs on the demonstration's bundled text, in its quick form."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.data = demo.Demo(options.binary.resolve(), directory, demo.QUICK)
        self.data.make_tokens(text.bundled())
        if self.data.failures:
            raise rounds.Unmeasurable(self.data.failures[0])

    def stage(self, name, isa, seed, overrides):
        """Trains it; its metrics, a dict a step."""
        run = self.directory / name
        shutil.rmtree(run, ignore_errors=True)
        tokens = self.data.tokens
        given = [
            f"run.dir={run}", f"data.mix={tokens}/mix.txt", f"data.base_dir={tokens}",
            f"data.tokenizer_file={self.data.tokenizer}", f"eval.mix={tokens}/heldout.txt",
            *demo.QUICK.overrides, "sample.interval=0", "checkpoint.interval=0",
            f"train.steps={self.options.steps}", f"cpu.isa={isa}",
            f"cpu.threads={self.options.threads}", f"data.seed={seed}", *overrides,
            *self.options.overrides,
        ]  # fmt: skip
        last = {word.split("=")[0]: word for word in given}  # a key is given once; the last counts
        rounds.call([self.options.binary, "train", RECIPE, *last.values()])
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]

    def both(self, name, first, second, seed=0):
        """Both stages; metrics of each, and the held-out loss at the end."""
        begin = self.directory / f"{name}-stage1"
        stages = [self.stage(begin.name, first, 1, [f"init.seed={seed}"])]
        stages.append(self.stage(f"{name}-stage2", second, 2,
                                 [f"init.from={begin}", "schedule.kind=linear",
                                  "schedule.warmup_steps=0", "schedule.final_fraction=0"]))  # fmt: skip
        tokens = self.data.tokens
        found = rounds.lockstep(
            self.options.binary, "eval", "--heldout", "--model", self.directory / f"{name}-stage2",
            "--mix", tokens / "heldout.txt", "--base-dir", tokens, "--token-type", "uint16",
            "--tokenizer", self.data.tokenizer, "--precision", "fp32",
            "--threads", self.options.threads,
        )  # fmt: skip
        return stages, found["total"]["loss"]


def middle(steps, key):
    return statistics.median(step[key] for step in steps)


def main():
    parser = rounds.options(__doc__, 1)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--first", default="avx2", help="stage 1's instruction set (avx2)")
    parser.add_argument("--second", default="avx512_bf16", help="stage 2's (avx512_bf16)")
    parser.add_argument("--steps", type=int, default=200, help="of a stage (200)")
    parser.add_argument("--window", type=int, default=20, help="steps beside the junction (20)")
    parser.add_argument("--seeds", type=int, default=2, help="other initial weights (2)")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    runs = Runs(options, rounds.scratch("junction"))
    sides = {
        "changed": (options.first, options.second, 0),
        "unchanged": (options.second, options.second, 0),
    }
    others = [f"seed {seed}" for seed in range(1, options.seeds + 1)]
    for seed, name in enumerate(others, 1):
        sides[name] = (options.second, options.second, seed)
    results = {}
    print(f"\n{'run':12} {'stage':>5} {'isa':12} {'steps':>9} {'loss':>8} {'tokens/s':>9} {'MFU':>7}")
    for name, (first, second, seed) in sides.items():
        load = rounds.Load()
        stages, loss = runs.both(name.replace(" ", "-"), first, second, seed)
        results[name] = loss
        parts = [(1, first, stages[0][-options.window :]), (2, second, stages[1][: options.window]),
                 (2, second, stages[1][-options.window :])]  # fmt: skip
        for number, isa, steps in parts:
            print(f"{name:12} {number:5} {isa:12} {steps[0]['step']:4}-{steps[-1]['step']:<4} "
                  f"{middle(steps, 'loss'):8.4f} {middle(steps, 'tokens_per_s'):9.0f} "
                  f"{middle(steps, 'mfu'):7.2%}")  # fmt: skip
        print(f"{name:12} held out {loss:.4f}; other processes used {load.others():.0%} of the CPUs",
              flush=True)  # fmt: skip
    scale = statistics.fmean(abs(results[name] - results["unchanged"]) for name in others)
    print(f"other initial weights change the held-out loss by {scale:.4f} (mean of {len(others)})")
    difference = abs(results["changed"] - results["unchanged"])
    return rounds.verdict("difference in held-out loss", difference, at_most=SHARE * scale)


if __name__ == "__main__":
    rounds.run(main)
