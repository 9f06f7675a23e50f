#!/bin/sh
# install_packages.sh PACKAGE...: installs what is missing of the Debian packages named. When nothing
# is missing, neither the network nor root is needed.
set -eu
missing=
for package in "$@"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  case $status in *installed*) [ "$status" = "${status#*not-}" ] && continue ;; esac
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root=sudo
else
  echo "error: not root, and sudo cannot be used here; install these packages first:$missing" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # lists of words on purpose
install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The lists may be missing or old on a fresh machine.
if $as_root apt-get update -qq >"$log" 2>&1 && install >>"$log" 2>&1 || install >>"$log" 2>&1; then
  exit 0
fi
tail -n 20 "$log" >&2
echo "error: could not install:$missing" >&2
exit 2
