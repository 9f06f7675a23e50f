#!/usr/bin/env python3
"""What full rematerialisation costs: step time with train.remat=full against none, 190M.

bench/remat.py [KEY=VALUE...]"""

import rounds

MOST = 1.36  # a forward pass more, which is a third of a step, and 3%


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--recipe", default=rounds.ROOT / "bench/recipes/190m.toml")
    parser.add_argument("--steps", type=int, default=2, help="timed in a round (2)")
    options = parser.parse_args()

    def step(remat):
        found = rounds.lockstep(
            options.binary, "bench", "step", options.recipe, f"train.remat={remat}",
            f"cpu.threads={options.threads}", *options.overrides, "--steps", options.steps,
        )  # fmt: skip
        return {**found, "value": found["median_step_seconds"],
                "note": f"{found['peak_memory_bytes'] / 2**20:,.0f} MiB"}  # fmt: skip

    sides = {"none": lambda: step("none"), "full": lambda: step("full")}
    found = rounds.interleave(options.rounds, sides, "seconds a step")
    ratio = rounds.median(found["full"]) / rounds.median(found["none"])
    return rounds.verdict("ratio", ratio, at_most=MOST)


if __name__ == "__main__":
    rounds.run(main)
