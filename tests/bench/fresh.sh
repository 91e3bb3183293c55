#!/usr/bin/env bash
# fresh.sh - times every variant on shapes drawn at random, on a machine with a GPU, nvcc and gcc, and
# says how far what `auto` takes is from the best, timed in the same run.
#
#   OUT=FOLDER tests/bench/fresh.sh [SEED [COUNT [SECONDS_FOR_EACH]]]
#
# LIMIT is how long it may time, in seconds (400).
# Writes fresh.json (for replay) and fresh.log into $OUT (build/fresh).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
out=${OUT:-build/fresh}
mkdir -p "$out"

# cuBLAS, wherever this machine keeps it.
blas=$(find / \( -path /proc -o -path /sys \) -prune -o -name 'libcublas.so.1[123]' -print 2>/dev/null | sort -V | tail -n 1)
[ -z "$blas" ] || export LD_LIBRARY_PATH=$(dirname "$blas")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

begin=$SECONDS
tests/gpu/standalone.sh build/gpu >"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log" >&2; exit 1; }
echo "built in $((SECONDS - begin)) s"
status=0
timeout "${LIMIT:-400}" build/gpu/bench_gpu --draw "${2:-300}" --seed "${1:-1}" --seconds "${3:-0.01}" \
    --json "$out/fresh.json" >"$out/fresh.log" || status=$?
if [ $status = 124 ]; then # what was timed is kept
    printf '\n ]\n}\n' >>"$out/fresh.json"
    echo "the time was up after $(grep -c 'nothing' "$out/fresh.log") shapes"
elif [ $status != 0 ]; then
    tail -n 3 "$out/fresh.log" >&2
    exit $status
fi
echo "in $((SECONDS - begin)) s"
head -n 1 "$out/fresh.log"
grep -E -A1 'auto takes .* longer' "$out/fresh.log" | awk '/auto takes/ { loss = $0; next } /^--/ { next } { print loss " -- " $1, $2, $3, $4 }' |
    sed 's/^ *//' | sort -t, -k2 -rn | head -n 60
tail -n 1 "$out/fresh.log"
