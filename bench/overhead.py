#!/usr/bin/env python3
"""What a training run does besides its steps' arithmetic and must wait for: the loader, metrics and the
record of what was consumed, the copy that a checkpoint is written from, and a checkpoint that is not
written yet. Its share of the time from the first step profiled to the end of the last.

bench/overhead.py [KEY=VALUE...]

The run is recipes/demo.toml on the text in assets/corpus, with a checkpoint every --interval steps."""

import json
import shutil
import sys
from collections import defaultdict

import rounds

sys.path.insert(0, str(rounds.ROOT / "tools/demo"))
import demo
import text

MOST = 0.01
WAITED_FOR = ("loader wait", "metrics", "checkpoint snapshot", "wait for the last checkpoint")
WARM = 55  # steps before the first one profiled, among them the first checkpoint's


def make_tokens(options, directory):
    data = demo.Demo(options.binary.resolve(), directory, demo.QUICK)
    data.make_tokens(text.bundled())
    if data.failures:
        raise rounds.Unmeasurable(data.failures[0])
    return data


def spans_of(path):
    """(name, begin, end) in seconds; of the run's own thread, ops left out."""
    events = json.loads(path.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    return [(e["name"], e["ts"] * 1e-6, (e["ts"] + e["dur"]) * 1e-6) for e in events
            if e.get("ph") == "X" and e["name"] in (*WAITED_FOR, "step")]  # fmt: skip


def main():
    parser = rounds.options(__doc__, 3)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=100, help="profiled in a round (100)")
    parser.add_argument("--interval", type=int, default=50, help="steps between checkpoints (50)")
    options = parser.parse_args()
    directory = rounds.scratch("overhead")
    data = make_tokens(options, directory)
    parts = defaultdict(list)

    def run():
        target = directory / "run"
        shutil.rmtree(target, ignore_errors=True)
        rounds.call([
            options.binary, "train", rounds.ROOT / "recipes/demo.toml", f"run.dir={target}",
            f"data.mix={data.tokens}/mix.txt", f"data.base_dir={data.tokens}",
            f"data.tokenizer_file={data.tokenizer}", "eval.interval=0", "sample.interval=0",
            f"checkpoint.interval={options.interval}", f"train.steps={WARM + options.steps}",
            f"profile.steps={WARM + 1}-{WARM + options.steps}",
            f"cpu.threads={options.threads}", *options.overrides,
        ])  # fmt: skip
        spans = spans_of(target / "profile.json")
        whole = max(end for _, _, end in spans) - min(begin for _, begin, _ in spans)
        waited = {name: sum(end - begin for each, begin, end in spans if each == name) / whole
                  for name in WAITED_FOR}  # fmt: skip
        for name, share in waited.items():
            parts[name].append({"value": share})
        return {"value": sum(waited.values()), "note": f"of {whole:.1f} s"}

    found = rounds.interleave(options.rounds, {"waiting": run}, "share of time")["waiting"]
    for name in WAITED_FOR:
        print(f"{name}: {rounds.median(parts[name]):.3%}")
    return rounds.verdict("share of time", rounds.median(found), at_most=MOST)


if __name__ == "__main__":
    rounds.run(main)
