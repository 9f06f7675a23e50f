#!/usr/bin/env python3
"""Held-out scoring in batches against the forward pass of training: FLOP/s of each, in bf16.

bench/scoring.py [--small 8] [--large 24]"""

import array
import gzip
import json
import random
from pathlib import Path

import generation
import rounds

LEAST = 0.95
LONGEST = 1024  # tokens of a document


def documents(directory, count, length, vocabulary):
    """A mix of one file: `count` documents of made-up ids, as frequent as in text."""
    draws = random.Random(1)
    ids = array.array("I", (int(vocabulary ** draws.random()) - 1 for _ in range(count * length)))
    (directory / "tokens.npy").write_bytes(ids.tobytes())
    with gzip.open(directory / "tokens.csv.gz", "wt") as file:
        file.writelines(f"{i * length},{(i + 1) * length}\n" for i in range(count))
    (directory / "mix.txt").write_text("made-up,tokens.npy\n")
    return directory / "mix.txt"


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("--recipe", type=Path, default=rounds.ROOT / "bench/recipes/190m.toml")
    parser.add_argument("--small", type=int, default=8, help="documents of the shorter run (8)")
    parser.add_argument("--large", type=int, default=24, help="documents of the longer run (24)")
    parser.add_argument("--batch", type=int, default=8, help="documents at a time (8)")
    options = parser.parse_args()
    model = generation.model(options.binary, options.recipe)
    config = json.loads((model / "config.json").read_text())
    length = min(LONGEST, config["max_position_embeddings"])
    facts = {}

    def training():
        found = rounds.lockstep(
            options.binary, "bench", "step", options.recipe, "batch.instances=1",
            "batch.microbatch=1", f"data.sequence_length={length}",
            f"cpu.threads={options.threads}",
        )  # fmt: skip
        # A step is three forward passes; recomputation does not count.
        facts["flops"] = (found["mfu_window_exact"] * found["peak_bf16_flops"]
                          / found["tokens_per_s"] / 3)  # fmt: skip
        forward = [op for op in found["ops"] if op["op"].endswith("_forward")]
        products = ("matmul_forward", "attention_forward")
        flops = sum(op["flops"] for op in forward if op["op"] in products)
        rate = flops / sum(op["seconds"] for op in forward)
        return {"value": rate / 1e9, "note": f"{rate / found['peak_bf16_flops']:.1%} of the peak"}

    with rounds.temporary() as directory:
        # The rows of the vocabulary are a multiple of 128; the last ones may stand for no id.
        mix = documents(Path(directory), options.large, length, config["vocab_size"] - 127)

        def seconds(count):
            return rounds.lockstep(
                options.binary, "eval", "--heldout", "--model", model, "--mix", mix,
                "--base-dir", directory, "--sequence-length", length, "--batch", options.batch,
                "--precision", "bf16", "--max-documents", count, "--threads", options.threads,
            )["wall"]  # fmt: skip

        def scoring():
            rate = length * rounds.slope(options.small, options.large, seconds)
            return {"value": rate * facts["flops"] / 1e9, "note": f"{rate:.1f} tokens/s"}

        found = rounds.interleave(
            options.rounds, {"training": training, "scoring": scoring}, "GFLOP/s"
        )
    ratio = rounds.median(found["scoring"]) / rounds.median(found["training"])
    return rounds.verdict("ratio", ratio, at_least=LEAST)


if __name__ == "__main__":
    rounds.run(main)
