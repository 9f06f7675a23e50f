#!/bin/sh
# check_tidy.sh BUILD [PATTERN]: clang-tidy with .clang-tidy's checks over every source file of the
# build, or those whose path holds PATTERN. The compile commands are g++'s: options that clang does
# not know are not its business, nor are results that a test of a refusal leaves alone.
set -eu
cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
python3 -c '
import json, sys
names = {c["file"] for c in json.load(open(sys.argv[1] + "/compile_commands.json"))}
pattern = sys.argv[2] if len(sys.argv) > 2 else ""
print("\0".join(sorted(name for name in names if pattern in name)), end="")' "$@" |
  xargs -0 -n 1 -P "$(nproc)" "$tidy" --quiet -p "$1" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-Wno-ignored-optimization-argument --extra-arg=-Wno-unused-result
