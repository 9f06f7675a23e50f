"""What the commands of this folder share: rounds in turn, medians, the load by other processes, and
a last line that says whether the promised ratio was held.

Exit codes: 0 held, 1 not held, 2 not measurable here (and why, on standard error)."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY = 0.1  # share of the CPUs used by others above which a number is not to be believed


class Unmeasurable(Exception):
    """Why there is no number."""


def options(description, rounds):
    """A parser with what every command takes."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/lockstep")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"of each side ({rounds})")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    return parser


def run(main):
    """Ends the process with main()'s verdict."""
    try:
        sys.exit(0 if main() else 1)
    except Unmeasurable as error:
        print(f"cannot be measured: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    sys.exit(2)


def call(command, environment=None, stdin=None):
    """Standard output of a command, as text; what went wrong becomes the reason for no number."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(
            command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True, env={**os.environ, **(environment or {})}, check=False,
        )  # fmt: skip
    except OSError as error:
        raise Unmeasurable(f"{command[0]}: {error.strerror}; build it with tools/build.sh release"
                           if command[0].endswith("lockstep") else str(error)) from error  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Unmeasurable(
            f"{' '.join(command[:4])} ... ended with {done.returncode}: {said[-1] if said else ''}"
        )
    return done.stdout.decode()


def lockstep(binary, *arguments):
    """The JSON document of a lockstep command, with its wall time in seconds as "wall"."""
    begin = time.monotonic()
    document = json.loads(call([binary, *arguments, "--json"]))
    return {**document, "wall": time.monotonic() - begin}


class Load:
    """Share of this process's CPUs that other processes use between its making and others()."""

    def __init__(self):
        self.begin, self.own, self.busy = time.monotonic(), self.own_seconds(), self.busy_seconds()

    @staticmethod
    def own_seconds():
        return sum(os.times()[:4])  # with the children that were waited for

    @staticmethod
    def busy_seconds():
        ticks = 0
        cpus = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *counts = line.split()
            if name in cpus:
                user, nice, system, _, _, irq, soft, steal = map(int, counts[:8])
                ticks += user + nice + system + irq + soft + steal
        return ticks / os.sysconf("SC_CLK_TCK")

    def others(self):
        wall = (time.monotonic() - self.begin) * len(os.sched_getaffinity(0))
        used = self.busy_seconds() - self.busy - (self.own_seconds() - self.own)
        return max(0.0, used / wall) if wall > 0 else 0.0


def interleave(rounds, sides, unit):
    """sides: {name: function() -> dict with "value", in `unit`}. Calls them in turn, a whole round
    after another, and prints a row each. {name: [dict of each round]}."""
    width = max(len(name) for name in sides)
    print(f"{'round':>5}  {'':{width}} {unit:>16} {'CPUs used by others':>20}")
    results = {name: [] for name in sides}
    most = 0.0
    for number in range(1, rounds + 1):
        for name, measure in sides.items():
            load = Load()
            result = measure()
            others = load.others()
            most = max(most, others)
            results[name].append({**result, "others": others})
            more = "".join(f"  {text}" for text in [result.get("note")] if text)
            print(f"{number:5}  {name:{width}} {result['value']:16,.4g} {others:19.0%}{more}",
                  flush=True)  # fmt: skip
    for name in sides:
        print(f"{'median':>5} {name:{width}} {median(results[name]):16,.4g}")
    if most > BUSY:
        print(f"warning: other processes used up to {most:.0%} of the CPUs; measure again when the "
              "machine is quiet")  # fmt: skip
    return results


def median(results, key="value"):
    return statistics.median(result[key] for result in results)


def slope(small, large, seconds):
    """Units a second without what a process takes to start and load: `seconds(n)` for two n."""
    first, second = seconds(small), seconds(large)
    if second <= first:
        raise Unmeasurable(f"{large} units took {second:.2f} s and {small} took {first:.2f} s")
    return (large - small) / (second - first)


def verdict(name, value, at_least=None, at_most=None):
    """Prints the last line. Whether it was held."""
    held = value >= at_least if at_least is not None else value <= at_most
    bound = f"at least {at_least:g}" if at_least is not None else f"at most {at_most:g}"
    print(f"{name} {value:.4g} ({bound}: {'held' if held else 'NOT held'})")
    return held


def scratch(name):
    """A directory under build/ that may be removed at any time."""
    path = ROOT / "build/bench" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def temporary():
    return tempfile.TemporaryDirectory(dir=scratch("temporary"))
