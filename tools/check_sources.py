#!/usr/bin/env python3
"""Every source file is built, every test runs, no file is too long, nothing is left for later.

check_sources.py BUILD    against BUILD/compile_commands.json
check_sources.py --sizes  prints lines of code by folder
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIP = {"build", "work", ".git", "demo-data"}
LONGEST = 800
LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def sources():
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if parts[0] not in SKIP and path.suffix in (".cpp", ".h", ".cu", ".py", ".sh"):
            yield path


def check(build):
    problems = []
    commands = json.loads((build / "compile_commands.json").read_text())
    built = {Path(command["file"]).resolve() for command in commands}
    for path in sources():
        name = path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > LONGEST:
            problems.append(f"{name}: {lines} lines, at most {LONGEST} are allowed")
        if path.name != Path(__file__).name and LEFT_OVER.search(text):
            problems.append(f"{name}: a note for later without the number of its issue")
        if path.suffix in (".cpp", ".cu") and path.resolve() not in built:
            problems.append(f"{name}: no target builds it")
    return problems


def sizes():
    folders = {}
    for path in sources():
        folder = path.relative_to(ROOT).parts[0]
        kind = 1 if path.stem.endswith("_test") or folder == "tests" else 0
        code = [line for line in path.read_text().splitlines() if line.strip(" \t")]
        code = [line for line in code if not line.lstrip().startswith(("//", "#!"))]
        folders.setdefault(folder, [0, 0])[kind] += len(code)
    print(f"{'folder':12} {'code':>7} {'tests':>7}")
    for folder, (code, tests) in folders.items():
        print(f"{folder:12} {code:7} {tests:7}")
    print(f"{'all':12} {sum(c for c, _ in folders.values()):7} "
          f"{sum(t for _, t in folders.values()):7}")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--sizes":
        sizes()
        sys.exit(0)
    found = check(Path(sys.argv[1]))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
