#!/usr/bin/env bash
# run.sh - builds the fuzzers with clang and runs them, one after the other, each from its committed
# corpus, the seeds and what earlier runs found. Says how much was tried, and what was found.
set -euo pipefail

usage() {
    cat <<'END'
usage: tests/fuzz/run.sh [--coverage] [--minimise] TARGET|all SECONDS

  TARGET       one of the files fuzz_TARGET.c; all: each of them for SECONDS
  --coverage   afterwards, the lines that the inputs reach, by llvm-cov
  --minimise   afterwards, replace the committed corpus by the fewest inputs that reach as much

Wants clang with its libFuzzer (Debian: clang and libclang-rt-14-dev; llvm for --coverage).
Builds, inputs and findings are kept in build/fuzz, or in the folder that FUZZ_BUILD names.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
build=${FUZZ_BUILD:-$root/build/fuzz}
coverage=no minimise=no
while [[ ${1:-} == -* ]]; do
    case $1 in
    --coverage) coverage=yes ;;
    --minimise) minimise=yes ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
if [ $# != 2 ] || ! [[ $2 =~ ^[0-9]+$ ]]; then
    usage >&2
    exit 2
fi
seconds=$2
if [ "$1" = all ]; then
    targets=$(cd "$here" && for file in fuzz_*.c; do echo "$file"; done |
        sed -n 's/^fuzz_\(.*\)\.c$/\1/p' | grep -vx sink)
else
    [ -f "$here/fuzz_$1.c" ] || { usage >&2 && exit 2; }
    targets=$1
fi

# configure FOLDER OPTIONS...
configure() {
    local folder=$1
    shift
    cmake -S "$here" -B "$folder" -DCMAKE_C_COMPILER="${FUZZ_CC:-clang}" \
        -DCMAKE_CXX_COMPILER="${FUZZ_CXX:-clang++}" "$@" >"$build/configure.log" 2>&1 ||
        { tail -n 20 "$build/configure.log" >&2 && exit 1; }
}

# build_target FOLDER TARGET
build_target() {
    cmake --build "$1" -j2 --target "fuzz_$2" >"$build/build.log" 2>&1 ||
        { tail -n 40 "$build/build.log" >&2 && exit 1; }
}

# The longest inputs worth trying: a target's work grows with them.
longest_of() {
    case $1 in
    number | params | accept | sched) echo 400 ;;
    *) echo 2048 ;;
    esac
}

# options_of TARGET: one a line.
options_of() {
    echo "-max_len=$(longest_of "$1")"
    echo -timeout=20
    echo -rss_limit_mb=4096
    [ ! -f "$here/$1.dict" ] || echo "-dict=$here/$1.dict"
}

# inputs_of TARGET: the folders there are, the one that grows first.
inputs_of() {
    local folder
    for folder in "$build/corpus/$1" "$here/corpus/$1" "$build/seeds/$1"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
}

fuzz() {
    local target=$1 log=$build/$1.log before after options folders status=0
    mkdir -p "$build/corpus/$target" "$build/findings"
    before=$(find "$build/findings" -name "$target-*" | wc -l)
    mapfile -t options < <(options_of "$target")
    mapfile -t folders < <(inputs_of "$target")
    nice -n 19 "$build/fuzz_$target" "${options[@]}" -max_total_time="$seconds" \
        -print_final_stats=1 -artifact_prefix="$build/findings/$target-" "${folders[@]}" \
        >"$log" 2>&1 || status=$?
    after=$(find "$build/findings" -name "$target-*" | wc -l)
    printf '%-10s %12s executions in %6s s, %5s edges, %5s features, %s new findings\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/^Done .* runs in \([0-9]*\) .*/\1/p' "$log")" \
        "$(grep -o ' cov: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9)" \
        "$(grep -o ' ft: [0-9]*' "$log" | tail -n 1 | tr -dc 0-9)" $((after - before))
    if [ "$status" != 0 ]; then
        grep -m 5 -E 'failed:|ERROR:|runtime error|SUMMARY' "$log" || tail -n 5 "$log"
        found=yes
    fi
}

# By edges alone: what differs in how often they are taken is not worth a committed file. What once
# failed, found-*, stays.
minimise() {
    local target=$1 options folders kept=$build/minimal/$1
    rm -rf "$kept"
    mkdir -p "$kept" "$here/corpus/$target"
    mapfile -t options < <(options_of "$target")
    mapfile -t folders < <(inputs_of "$target")
    "$build/fuzz_$target" "${options[@]}" -set_cover_merge=1 -use_counters=0 "$kept" \
        "${folders[@]}" >"$build/minimise.log" 2>&1
    find "$here/corpus/$target" -type f -not -name 'found-*' -delete
    cp "$kept"/* "$here/corpus/$target"
    echo "$target: kept $(find "$kept" -type f | wc -l) inputs," \
        "$(cat "$kept"/* | wc -c) bytes"
}

cover() {
    local target=$1 folders
    build_target "$build/coverage" "$target"
    mapfile -t folders < <(inputs_of "$target")
    LLVM_PROFILE_FILE=$build/coverage/$target.raw "$build/coverage/fuzz_$target" \
        "${folders[@]}" >/dev/null 2>&1
    llvm-profdata merge -o "$build/coverage/$target.data" "$build/coverage/$target.raw"
    llvm-cov report "$build/coverage/fuzz_$target" -instr-profile "$build/coverage/$target.data" \
        "$root/proto" "$root/server" | awk -v target="$target" '
        /^[a-z].*\.(c|cc|h) / && $8 > 0 && $8 != $9 {
            printf "%-10s %-28s %5d of %5d lines (%s)\n", target, $1, $8 - $9, $8, $10 }'
}

found=no
mkdir -p "$build"
python3 "$here/seeds.py" "$build/seeds"
configure "$build"
[ $coverage = no ] || configure "$build/coverage" -DGEMMD_FUZZ_COVERAGE=ON
for target in $targets; do
    build_target "$build" "$target"
    fuzz "$target"
    [ $minimise = no ] || minimise "$target"
    [ $coverage = no ] || cover "$target"
done
[ $found = no ]
