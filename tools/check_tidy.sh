#!/bin/sh
# check_tidy.sh BUILD: clang-tidy with .clang-tidy's checks over every source file of the build.
set -eu
cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
python3 -c '
import json, sys
names = {c["file"] for c in json.load(open(sys.argv[1] + "/compile_commands.json"))}
print("\0".join(sorted(names)), end="")' "$1" |
  xargs -0 -n 1 -P "$(nproc)" "$tidy" --quiet -p "$1"
