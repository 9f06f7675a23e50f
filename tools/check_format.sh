#!/bin/sh
# Every C++ file is as clang-format 14 writes it. --fix rewrites those that are not.
set -eu
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
if [ "${1:-}" = --fix ]; then mode=-i; else mode="--dry-run -Werror"; fi
# shellcheck disable=SC2086  # two words on purpose
find . \( -path ./build -o -path ./work -o -path ./.git \) -prune -o \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) -print0 | xargs -0 "$format" $mode
