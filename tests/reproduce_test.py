#!/usr/bin/python3
"""./reproduce --quick --breaks from its start, then again: nothing is trained twice. Exits with 77
(skipped) where python3-torch is not installed.

reproduce_test.py LOCKSTEP DIRECTORY"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "tools/reference/reproduce.py"


def reproduce(binary, out):
    command = ["/usr/bin/python3", "-B", str(SCRIPT), "--binary", binary, "--quick", "--breaks"]
    done = subprocess.run([*command, "--out", str(out)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)  # fmt: skip
    print(done.stdout)
    if done.returncode != 0:
        sys.exit(f"error: reproduce ended with {done.returncode}")
    return done.stdout, json.loads((out / "summary.json").read_text())


def main():
    binary, out = sys.argv[1], Path(sys.argv[2])
    torch = ["/usr/bin/python3", "-c", "import torch"]
    if subprocess.run(torch, stderr=subprocess.DEVNULL).returncode != 0:
        print("python3-torch is not installed")
        sys.exit(77)
    shutil.rmtree(out, ignore_errors=True)
    _, summary = reproduce(binary, out)
    trained = summary["seconds"]
    if len(trained) != 14 or summary["failures"]:
        sys.exit(f"error: wanted 14 trainings and no failure, found {summary}")
    for name, verdict in summary["verdicts"].items():
        if (verdict == "differs") != name.startswith("break-"):
            sys.exit(f"error: {name}: {verdict}")
    again, summary = reproduce(binary, out)
    if summary["seconds"]:
        sys.exit(f"error: trained again: {', '.join(summary['seconds'])}")
    if again.count("(from an earlier run)") < 14:
        sys.exit("error: less than everything was taken from the earlier run")


if __name__ == "__main__":
    main()
