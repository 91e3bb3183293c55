#!/usr/bin/env bash
# sanitize.sh - compute-sanitizer's tools on every kernel, and on kernels that are wrong, which they
# must find: else their silence would say nothing.
#
#   tests/gpu/sanitize.sh FOLDER      where tests/gpu/standalone.sh built what it runs
set -uo pipefail

bin=${1:?the folder that standalone.sh built in}
failed=0

# check WANTED TOOL COMMAND...: WANTED is clean or found.
check() {
    local wanted=$1 tool=$2 said
    shift 2
    said=$(timeout 600 compute-sanitizer --tool "$tool" "$@" 2>&1 | grep 'SUMMARY' | tail -n 1)
    case "$said" in
    *' 0 errors'* | *': 0 hazards'*) [ "$wanted" = clean ] ;;
    *SUMMARY*) [ "$wanted" = found ] ;;
    *) false ;;
    esac && echo "$tool: $wanted, as it should be: ${*##*/}" && return
    echo "$tool: should be $wanted: ${*##*/}: ${said:-no summary}"
    failed=1
}

check found memcheck "$bin/broken_gpu" bounds
check found initcheck "$bin/broken_gpu" uninitialised
check found racecheck "$bin/broken_gpu" race
check found synccheck "$bin/broken_gpu" barrier
for tool in memcheck racecheck synccheck; do
    check clean "$tool" "$bin/profile_gpu"
done
# Only these write all that their kernels read.
for variant in direct vector naive tiled padded shared; do
    check clean initcheck "$bin/test_gpu_kernels" --small --only "$variant"
done
exit $failed
