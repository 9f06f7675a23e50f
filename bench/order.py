#!/usr/bin/env python3
"""The olmo-core order of an epoch: Lockstep's whole process against NumPy's own shuffle.

bench/order.py [--instances 50000000]"""

import json

import rounds

LEAST = 3
SHOWN = 1000  # positions that are compared

# OLMo-core numbers the instances in 32 bits and shuffles them with the seed and epoch added.
NUMPY = """
import json, sys, time
import numpy as np
n, seed, shown = map(int, sys.argv[1:])
begin = time.monotonic()
order = np.arange(n, dtype=np.uint32)
np.random.Generator(np.random.PCG64(seed=seed)).shuffle(order)
seconds = time.monotonic() - begin
print(json.dumps({"seconds": seconds, "order": order[:shown].tolist()}))
"""


def main():
    parser = rounds.options(__doc__, 5)
    parser.add_argument("--instances", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=34521)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has NumPy")
    options = parser.parse_args()
    epoch = 1

    def ours():
        found = rounds.lockstep(
            options.binary, "data", "order", "--kind", "olmo-core", "--seed", options.seed,
            "--epoch", epoch, "--instances", options.instances, "--count", SHOWN,
        )  # fmt: skip
        return {"value": found["wall"], "order": found["order"]}

    def theirs():
        found = json.loads(rounds.call([options.python, "-c", NUMPY, options.instances,
                                        options.seed + epoch, SHOWN]))  # fmt: skip
        return {"value": found["seconds"], "order": found["order"]}

    found = rounds.interleave(options.rounds, {"lockstep": ours, "numpy": theirs}, "seconds")
    if found["lockstep"][0]["order"] != found["numpy"][0]["order"]:
        raise rounds.Unmeasurable("the two orders differ, so that they cannot be compared")
    print(f"the first {SHOWN} of {options.instances:,} instances are the same")
    ratio = rounds.median(found["numpy"]) / rounds.median(found["lockstep"])
    return rounds.verdict("ratio", ratio, at_least=LEAST)


if __name__ == "__main__":
    rounds.run(main)
