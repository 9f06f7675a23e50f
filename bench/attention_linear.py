#!/usr/bin/env python3
"""Attention's time a token, forward and backward, as sequences grow: constant in sliding layers,
growing with the length in full ones.

bench/attention_linear.py [--window 256]"""

import rounds

LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
BASE = 2048  # from here on a window's pairs a token hardly grow
MOST = 1.15


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    options = parser.parse_args()
    lengths = [length for length in LENGTHS if length <= options.longest]
    if lengths[-1] <= BASE:
        raise rounds.Unmeasurable(f"--longest must be above {BASE}")
    recipe = rounds.ROOT / "bench/recipes/sliding.toml"

    def attention(length, window):
        found = rounds.lockstep(
            options.binary, "bench", "step", recipe, f"data.sequence_length={length}",
            f"model.sliding_window={window}", f"cpu.threads={options.threads}",
        )  # fmt: skip
        seconds = sum(op["seconds"] for op in found["ops"] if op["op"].startswith("attention_"))
        if seconds == 0:
            raise rounds.Unmeasurable("bench step reports no attention_* op")
        return {"value": seconds / length * 1e6}

    sides = {}
    for length in lengths:
        for name, window in (("window", options.window), ("full", 0)):
            sides[f"{name} {length}"] = lambda at=length, keys=window: attention(at, keys)
    found = rounds.interleave(options.rounds, sides, "us a token")
    cost = {name: rounds.median(results) for name, results in found.items()}
    print(f"\n{'tokens':>7} {'window ' + str(options.window):>12} {'full':>12}   us a token")
    for length in lengths:
        print(f"{length:7} {cost[f'window {length}']:12.3f} {cost[f'full {length}']:12.3f}")
    last = lengths[-1]
    print(f"full attention, {last} to {BASE}: {cost[f'full {last}'] / cost[f'full {BASE}']:.3g}")
    ratio = cost[f"window {last}"] / cost[f"window {BASE}"]
    return rounds.verdict(f"ratio of {last} to {BASE} tokens", ratio, at_most=MOST)


if __name__ == "__main__":
    rounds.run(main)
