#!/usr/bin/env bash
# standalone.sh - builds the tests and the benchmark of the kernels for GPUs, and nothing else:
# for machines with a GPU, nvcc and gcc, and none of the libraries that the daemon needs.
#
#   tests/gpu/standalone.sh [FOLDER]   test_gpu_kernels, test_gpu_huge, bench_gpu, bench_choices, bench_streams,
#                                      bench_groups, bench_accuracy, profile_gpu and broken_gpu; in FOLDER (build/gpu)
#
# Built for the GPU that is there, or for the compute capability that GM_ARCH names (90a, ...).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
out=$(realpath -m "${1:-$root/build/gpu}")
cd "$root"
mkdir -p "$out"

nvcc=$(command -v nvcc || true)
nvcc=${NVCC:-${nvcc:-/usr/local/cuda/bin/nvcc}}
cuda=$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd -P)
include=$cuda/include
[ -e "$include/cuda_runtime.h" ] || include=$(echo "$cuda"/targets/*/include)

arch=${GM_ARCH:-}
if [ -z "$arch" ]; then
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
    [ "$arch" != 90 ] || arch=90a
fi
echo "nvcc is $nvcc, compute capability $arch"

c="gcc -std=c17 -O2 -ftree-vectorize -g -DNDEBUG -Wall -Wextra -Werror -pthread"
version=$(sed -n 's/^project(gemmd VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
c+=" -D_GNU_SOURCE -DGM_VERSION='\"$version\"' -DGM_HAVE_CUDA=1 -DGM_HAVE_OPENBLAS=0 -I. -I$include"
cu="$nvcc -std=c++17 -O3 -lineinfo -Xcompiler -Wall,-Wextra -D_GNU_SOURCE"
cu+=" -DGM_HAVE_SM90A=$([ "$arch" = 90a ] && echo 1 || echo 0)"
cu+=" -gencode arch=compute_$arch,code=sm_$arch -I. -Ikernels/cuda/include"

numbers=$(ls proto/number/*.cc)
library="proto/matrix.c proto/status.c $(ls proto/number/*.c kernels/*.c kernels/choose/*.c kernels/cpu/{,*/}*.c kernels/cuda/*/*.c | grep -v openblas)"
kernels=$(ls kernels/cuda/*/*.cu)
helpers="tests/gpu/huge.cu tests/bench/bench_gpu_data.cu tests/bench/baseline_nothing.cu"
programs="$(ls tests/gpu/*.c tests/bench/bench_{gpu,choices,streams,groups,accuracy}*.c) tests/bench/shapes.c tests/unit/test_cpu_case.c tests/bench/proof.c"

object() {
    echo "$out/${1//\//_}.o"
}

# A line for each object, with the command that makes it; as many at once as there are processors.
{
    for file in $kernels $helpers; do
        echo "$cu -c $file -o $(object "$file")"
    done
    for file in $library $programs; do
        echo "$c -c $file -o $(object "$file")"
    done
    for file in $numbers; do
        echo "g++ -std=c++17 -O2 -g -DNDEBUG -Wall -Wextra -Werror -fno-exceptions -fno-rtti -I. -c $file -o $(object "$file")"
    done
} | xargs -P "$(nproc)" -d '\n' -I '{}' sh -c '{} || { echo "failed: {}" >&2; exit 255; }'

# objects FILES: their objects, on one line.
objects() {
    for file in "$@"; do
        object "$file"
    done | tr '\n' ' '
}

# link NAME FILES: the library is searched for what the files need, and for no more.
link() {
    local name=$1
    shift
    # shellcheck disable=SC2046
    "$nvcc" -o "$out/$name" $(objects "$@") "$out/libkernels.a" -lpthread -ldl -lm
}
rm -f "$out/libkernels.a"
# shellcheck disable=SC2046,SC2086
ar rcs "$out/libkernels.a" $(objects $library $numbers $kernels tests/gpu/no_simulator.c)
link test_gpu_kernels tests/gpu/{test_gpu_kernels,prove,device}.c tests/unit/test_cpu_case.c
link test_gpu_huge tests/gpu/{test_gpu_huge,device}.c tests/gpu/huge.cu
link bench_gpu tests/bench/bench_gpu{,_contest,_result,_baseline}.c tests/bench/{shapes,proof}.c \
    tests/bench/{baseline_nothing,bench_gpu_data}.cu tests/gpu/device.c
link bench_choices tests/bench/bench_choices.c tests/bench/bench_gpu_{result,contest,baseline}.c tests/bench/{shapes,proof}.c \
    tests/bench/{baseline_nothing,bench_gpu_data}.cu tests/gpu/device.c
link bench_accuracy tests/bench/bench_accuracy.c tests/gpu/device.c
link bench_streams tests/bench/bench_streams.c
link bench_groups tests/bench/bench_groups.c
link profile_gpu tests/gpu/{profile_gpu,profiled,device}.c
# shellcheck disable=SC2086
$cu -cudart static -o "$out/broken_gpu" tests/gpu/broken_gpu.cu
echo "built test_gpu_kernels, test_gpu_huge, bench_gpu, bench_choices, bench_streams, bench_groups, bench_accuracy, profile_gpu and broken_gpu in $out"
