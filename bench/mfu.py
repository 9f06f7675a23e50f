#!/usr/bin/env python3
"""MFU of a training step (window-exact, against the peak measured in the same process) and memory
used against memory predicted.

bench/mfu.py 190m | 10m | sliding | 190m-fp32 [KEY=VALUE...]"""

import rounds

# Recipe in bench/recipes, overrides, and the MFU promised.
SHAPES = {
    "190m": ("190m", [], 0.75),
    "10m": ("10m", [], 0.65),
    "sliding": (
        "190m",
        ["data.sequence_length=8192", "model.sliding_window=4096", "batch.instances=1"],
        0.65,
    ),
    "190m-fp32": ("190m", ["train.precision=fp32"], 0.80),
}
MEMORY = 0.05  # largest error of the prediction


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=3, help="timed in a round (3)")
    options = parser.parse_args()
    recipe, overrides, floor = SHAPES[options.shape]

    def step():
        found = rounds.lockstep(
            options.binary, "bench", "step", rounds.ROOT / f"bench/recipes/{recipe}.toml",
            f"cpu.threads={options.threads}", *overrides, *options.overrides,
            "--steps", options.steps,
        )  # fmt: skip
        peak = found["peak_fp32_flops" if found["precision"] == "fp32" else "peak_bf16_flops"]
        return {**found, "value": found["mfu_window_exact"],
                "note": f"{found['tokens_per_s']:7.1f} tokens/s of {peak / 1e9:.1f} GFLOP/s"}  # fmt: skip

    found = rounds.interleave(options.rounds, {options.shape: step}, "MFU")[options.shape]
    last = max(found, key=lambda result: result["peak_memory_bytes"])
    used, predicted = last["peak_memory_bytes"], last["predicted_memory_bytes"]
    print(f"memory: {used / 2**20:,.0f} MiB used, {predicted / 2**20:,.0f} MiB predicted")
    memory = rounds.verdict("memory off by", abs(used / predicted - 1), at_most=MEMORY)
    return rounds.verdict("MFU", rounds.median(found), at_least=floor) and memory


if __name__ == "__main__":
    rounds.run(main)
