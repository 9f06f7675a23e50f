#!/bin/sh
# build.sh PRESET [TARGET...]: configures and builds build/PRESET; all targets when none is named.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
for target in "$@"; do set -- "$@" --target "$target"; shift; done
if [ ! -f "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" >/dev/null
fi
# A compiler at work on the largest files takes about 1.5 GB: no more jobs than memory has room for.
memory_kib=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo)
jobs=$(nproc)
room=$((memory_kib / 1500000))
[ "$room" -ge "$jobs" ] || jobs=$((room > 1 ? room : 1))
cmake --build "build/$preset" -j "$jobs" "$@"
