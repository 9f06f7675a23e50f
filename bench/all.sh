#!/bin/sh
# bench/all.sh [OPTION...]: every promise about speed, measured; the last line of each again at the
# end. Options go to every command: --binary FILE, --rounds N, --threads N. About an hour on two
# quiet cores. Exits with 1 when one was not held, else with 2 when one could not be measured.
set -u
cd "$(dirname "$0")/.." || exit 2
# A command whose peer cannot be had says so.
tools/install_packages.sh python3-numpy python3-torch libopenblas0-openmp
command -v npm > /dev/null || tools/install_packages.sh nodejs npm

summary=$(mktemp)
log=$(mktemp)
trap 'rm -f "$summary" "$log"' EXIT
worst=0

while read -r command; do
  echo "== bench/$command"
  # shellcheck disable=SC2086  # words on purpose
  { python3 bench/$command "$@" 2>&1; echo $? > "$log.code"; } < /dev/null | tee "$log"
  code=$(cat "$log.code")
  printf '%s\n    %s\n' "$command" "$(tail -n 1 "$log")" >> "$summary"
  if [ "$code" -eq 1 ]; then worst=1; elif [ "$code" -ne 0 ] && [ $worst -eq 0 ]; then worst=2; fi
done << 'COMMANDS'
mfu.py 190m
mfu.py 10m
mfu.py sliding
mfu.py 190m-fp32
peers/compare_torch.py 190m
peers/compare_torch.py 190m --allocator default
peers/compare_torch.py 10m
peers/compare_torch.py 10m --allocator default
remat.py
attention_linear.py
overhead.py
order.py
tokenizer.py
generation.py
scoring.py
junction.py
COMMANDS
rm -f "$log.code"
echo
cat "$summary"
exit $worst
