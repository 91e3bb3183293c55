#!/usr/bin/env bash
# test_build.sh - what deploy/build.sh asks CMake for, on machines with and without nvcc and GPUs:
# both are played by scripts of ours, and so is CMake, which writes down how it was called.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
logs=$root/log
failed=0

# machine NVCC GPU...: compute capabilities that nvcc knows ("" for no nvcc), and those of GPUs.
machine() {
    rm -rf "$root/bin"
    mkdir "$root/bin"
    printf '#!/bin/sh\necho "$@" >>"%s/calls"\n' "$root" >"$root/bin/cmake"
    [ -z "$1" ] || printf '#!/bin/sh\n[ "$1" = --list-gpu-arch ] && printf "compute_%%s\\n" %s\n' "$1" \
        >"$root/bin/nvcc"
    shift
    [ $# = 0 ] || cat >"$root/bin/nvidia-smi" <<SMI
#!/bin/sh
case \$1 in
*compute_cap*) printf '%s\n' $* ;;
*) printf '%s\n' "A GPU" ;;
esac
SMI
    chmod +x "$root"/bin/*
}

# asks WHAT PRESET WANTED: the arguments of CMake beyond the preset itself.
asks() {
    local said
    rm -f "$root/calls"
    (
        . "$checkout/deploy/progress.sh"
        trap - EXIT
        has() { [ -x "$root/bin/$1" ]; }
        PATH=$root/bin:/usr/bin:/bin
        cd "$root"
        . "$checkout/deploy/build.sh"
        find_gpu "$1" "a sentence" >"$root/notes"
        build "$2" >"$root/built"
    )
    said=$(sed -n "s/^--preset $2 *//p" "$root/calls")
    [ "$said" = "$3" ] && return
    printf '%s, find_gpu %s, build %s: cmake was given "%s", not "%s"\n' \
        "$machine" "$1" "$2" "$said" "$3"
    failed=$((failed + 1))
}

says() {
    grep -qF "$1" "$root/notes" && return
    printf '%s: not said: %s\n' "$machine" "$1"
    failed=$((failed + 1))
}

whole='-DGEMMD_CUDA=AUTO -UGEMMD_CUDA_FAST_COMPILE'
fast='-DGEMMD_CUDA=AUTO -DGEMMD_CUDA_FAST_COMPILE=ON'
all="$whole -UGEMMD_CUDA_ARCHITECTURES"
taken=-DGEMMD_SIMT_FROM=$root/build/release
known='75 80 86 89 90 100 103 120'

machine='nothing' && machine ''
asks here release -DGEMMD_CUDA=OFF
says 'no nvcc'
says 'no NVIDIA GPU: a sentence'
asks all release "$all"
asks all asan "$taken"

machine='nvcc alone' && machine "$known"
asks here release -DGEMMD_CUDA=OFF
asks all release "$all"
asks all tsan "$taken"

machine='an H200' && machine "$known" 9.0
asks here release "$whole -DGEMMD_CUDA_ARCHITECTURES=90a"
says 'GPU: A GPU'
asks all release "$all"
asks here asan "$taken"

machine='nvcc without a GPU' && machine "$known"
asks one release "$fast -DGEMMD_CUDA_ARCHITECTURES=90a"

machine='an nvcc that knows no Hopper' && machine '75 80'
asks one release "$fast -UGEMMD_CUDA_ARCHITECTURES"

machine='two kinds, one twice' && machine "$known" 8.6 12.0 8.6
asks here release "$whole -DGEMMD_CUDA_ARCHITECTURES=86;120"
asks one release "$whole -DGEMMD_CUDA_ARCHITECTURES=86;120"

machine='one that nvcc does not know' && machine "$known" 7.0
asks here release "$all"

machine='one of two that nvcc knows' && machine "$known" 7.0 8.0
asks here release "$whole -DGEMMD_CUDA_ARCHITECTURES=80"

machine='a GPU without nvcc' && machine '' 8.9
asks here release "$all"
says 'no nvcc'

machine='a driver that answers nonsense' && machine "$known" '[N/A]'
asks here release -DGEMMD_CUDA=OFF

[ $failed = 0 ] && echo "all as wanted"
exit $((failed > 0))
