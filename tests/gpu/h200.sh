#!/usr/bin/env bash
# h200.sh - everything that needs a GPU, in one go, on a machine that has one and none of our
# libraries. What it runs is built elsewhere and brought along:
#
#   where the libraries are (tests/run.sh installs them):
#     cmake --preset gpu && cmake --build --preset gpu
#   bring the checkout with build/gpu/server/gemmd and build/gpu/tests/{gemmd_inject,test_gpu_backend,
#   test_gpu_kernels,test_gpu_huge,bench/bench_gpu}, and there:
#     OUT=results tests/gpu/h200.sh [--quick]
#
# Writes summary.txt, a log of each step and bench_gpu.json into $OUT (build/h200 where it is not set),
# and prints the summary last. --quick leaves out the kernels' own tests and the benchmark. Exits 0 if
# all that ran was right.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
bin=${GM_GPU_BUILD:-build/gpu}
out=${OUT:-build/h200}
quick=no
[ "${1:-}" != --quick ] || quick=yes
mkdir -p "$out"
summary=$out/summary.txt
: >"$summary"
failed=0

note() {
    echo "$*" | tee -a "$summary"
}

# cuBLAS, wherever this machine keeps it: the daemon looks where the loader does.
blas=$(find / \( -path /proc -o -path /sys \) -prune -o -name 'libcublas.so.1[123]' -print 2>/dev/null | sort -V | tail -n 1)
[ -z "$blas" ] || export LD_LIBRARY_PATH=$(dirname "$blas")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# step NAME SECONDS COMMAND...: its output goes to NAME.log, its outcome into the summary.
step() {
    local name=$1 seconds=$2 begin=$SECONDS status=0
    shift 2
    timeout -k 5 "$seconds" "$@" >"$out/$name.log" 2>&1 || status=$?
    note "$name: $([ $status = 0 ] && echo passed || echo "FAILED, status $status"), $((SECONDS - begin)) s; $(tail -n 1 "$out/$name.log")"
    [ $status = 0 ] || failed=1
}

daemon=
url=

# start_daemon NAME BINARY [ENVIRONMENT...]: sets $daemon and $url.
start_daemon() {
    local name=$1 binary=$2 i
    shift 2
    env "$@" "$binary" --listen 127.0.0.1:0 --backend cuda >"$out/$name.address" 2>"$out/$name.log" &
    daemon=$!
    url=
    for i in $(seq 300); do
        url=$(sed -n 's/^listening on //p' "$out/$name.address")
        [ -z "$url" ] || break
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    rm -f "$out/$name.address"
    [ -n "$url" ] || note "$name did not start: $(tail -n 1 "$out/$name.log")"
}

# end_daemon NAME EXPECTED: its exit status must be that.
end_daemon() {
    local status=0
    kill -TERM "$daemon" 2>/dev/null
    wait "$daemon" || status=$?
    daemon=
    [ "$status" = "$2" ] || failed=1
    note "$1 ended with status $status, expected $2"
}

trap '[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null' EXIT

{
    date -u
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,memory.total --format=csv
    uname -r
    echo "cuBLAS: ${blas:-none}"
    git log -1 --format='commit %H' 2>/dev/null
} 2>&1 | tee -a "$summary"

step test_gpu_backend 200 "$bin/tests/test_gpu_backend"
if [ $quick = no ]; then
    step test_gpu_kernels 900 "$bin/tests/test_gpu_kernels"
    step test_gpu_huge 200 "$bin/tests/test_gpu_huge"
    step bench_gpu 480 "$bin/tests/bench/bench_gpu" --json "$out/bench_gpu.json"
fi

start_daemon gemmd "$bin/server/gemmd" GEMMD_LOG_LEVEL=warn
if [ -n "$url" ]; then
    step requests 150 python3 tests/gpu/h200_requests.py serve "$url"
    grep '^= ' "$out/requests.log" | tee -a "$summary"
    end_daemon gemmd 0
else
    failed=1
fi

step random 90 python3 tests/gpu/random_requests.py "$bin/server/gemmd" 30
grep '^= ' "$out/random.log" | tee -a "$summary"

step regions 120 python3 tests/gpu/regions.py "$bin/server/gemmd"
grep '^= ' "$out/regions.log" | tee -a "$summary"

step matrices 280 python3 tests/gpu/matrices.py "$bin/server/gemmd" 5 "$bin/tests/bench/bench_bare"
grep '^= ' "$out/matrices.log" | tee -a "$summary"

step eval 240 python3 tests/gpu/eval.py "$bin/server/gemmd"
grep '^= ' "$out/eval.log" | tee -a "$summary"

# An error that no device gets over, under the load of 64 clients: all are answered, or refused, and
# the daemon ends with status 1 and says why.
start_daemon inject "$bin/tests/gemmd_inject" INJECT_FAULT=cudaLaunchKernel:400:719
if [ -n "$url" ]; then
    python3 tests/gpu/h200_requests.py lose "$url" >>"$out/inject.log" 2>&1 || failed=1
    grep '^= ' "$out/inject.log" | tee -a "$summary"
    end_daemon inject 1
    note "$(grep -m 1 event=device_failed "$out/inject.log")"
else
    failed=1
fi

note "$([ $failed = 0 ] && echo 'all well' || echo 'SOMETHING FAILED: see the logs')"
exit $failed
