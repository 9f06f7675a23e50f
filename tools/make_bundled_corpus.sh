#!/bin/sh
# Makes assets/corpus again from its sources: one Debian binary package, another, and the sources of
# two more. Needs the network; writes only assets/corpus and a temporary directory.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/assets/corpus
extract=$PWD/tools/corpus/extract.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial"
cat > "$work/sources.list" <<END
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
END
cd "$work"
apt-get download bible-kjv-text metamath-databases
for package in *.deb; do dpkg-deb -x "$package" "${package%%_*}"; done
set -- -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
  -o Dir::State::lists="$work/lists"
apt-get "$@" update
apt-get "$@" source --download-only sqlite3 tzdata
mkdir sqlite tz
tar -xf sqlite3_*.orig.tar.xz -C sqlite --strip-components 1
tar -xf sqlite3_*.orig-www.tar.xz
tar -xf tzdata_*.orig.tar.gz -C tz

bundle() { python3 "$extract" --bundled --max-bytes 1100000 "$1" "$2" "$out/$1.jsonl.gz"; }
bundle scripture bible-kjv-text
bundle mathematics metamath-databases
bundle c-source sqlite
bundle database-pages www
bundle timekeeping tz
