#!/usr/bin/env python3
"""Generation of the 190M model: bytes of weights and of cached keys and values that a token must
read, times tokens a second, against the measured rate of reading memory.

bench/generation.py [--tokens 128]"""

import json

import rounds

LEAST = 0.7


def model(binary, recipe):
    """The directory with the recipe's initial weights."""
    directory = rounds.scratch("models") / recipe.stem
    if not (directory / "config.json").exists():
        print(f"initial weights into {directory}", flush=True)
        rounds.call([binary, "init", recipe, "--overwrite", "-o", directory])
    return directory


def bytes_of_token(directory, context):
    """In bf16: every weight but the embedding's, whose row is looked up, and the cache."""
    config = json.loads((directory / "config.json").read_text())
    d, dim = config["hidden_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    layers = config["num_hidden_layers"]
    matrices = d * dim * (2 * heads + 2 * kv_heads) + 3 * d * config["intermediate_size"]
    weights = layers * matrices + config["vocab_size"] * d
    return 2 * weights + 2 * layers * 2 * kv_heads * dim * context


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("--recipe", type=rounds.Path, default=rounds.ROOT / "bench/recipes/190m.toml")
    parser.add_argument("--tokens", type=int, default=128, help="to generate in a round (128)")
    options = parser.parse_args()
    directory = model(options.binary, options.recipe)
    size = bytes_of_token(directory, options.tokens / 2)
    print(f"{size / 1e6:.1f} MB a token")

    def generate():
        rate = rounds.lockstep(
            options.binary, "generate", "--model", directory, "--prompt-ids", 1, "--ignore-eos",
            "--max-tokens", options.tokens, "--threads", options.threads,
        )["tokens_per_s"]  # fmt: skip
        return {"value": rate * size / 1e9, "note": f"{rate:.2f} tokens/s"}

    def read():
        found = rounds.lockstep(options.binary, "bench", "peak", "--threads", options.threads)
        return {"value": found["read_bytes_per_s"] / 1e9}

    found = rounds.interleave(options.rounds, {"memory": read, "generation": generate}, "GB/s")
    share = rounds.median(found["generation"]) / rounds.median(found["memory"])
    return rounds.verdict("share of the memory's rate", share, at_least=LEAST)


if __name__ == "__main__":
    rounds.run(main)
