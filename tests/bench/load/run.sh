#!/usr/bin/env bash
# run.sh - gemmd under load, beside the HTTP library by itself, FastAPI and NumPy, and Triton: tables
# and a plot. Installs and builds what it needs, in build/ and by the system's package manager.
set -euo pipefail

usage() {
    cat <<'END'
usage: tests/bench/load/run.sh [--gpu] [--full] [--only WORDS] [--rounds N] [--seconds S] [--json FILE]

  --gpu         gemmd on the GPU, beside FastAPI and CuPy
  --full        every operation, size, form and number of connections, instead of four minutes of some
  --only WORDS  the cases that have all of these words: --only "matmul 64x64 raw"
  --rounds N    turns of each server at a case (2)
  --seconds S   of a turn (1)
  --json FILE   where the figures go (build/load.json); the plot goes beside it, as .svg
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)
cd "$root"
. deploy/progress.sh
. deploy/deps.sh
. deploy/build.sh

here=tests/bench/load
venv=build/load-venv
triton=build/triton-venv
json=build/load.json
arguments=()
gpu=no
while [ $# -gt 0 ]; do
    case $1 in
    --full) arguments+=("$1") ;;
    --gpu)
        arguments+=("$1")
        gpu=yes
        ;;
    --only | --rounds | --seconds)
        [ $# -gt 1 ] || die "$1 wants a value"
        arguments+=("$1" "$2")
        shift
        ;;
    --json)
        [ $# -gt 1 ] || die "$1 wants a file"
        json=$2
        shift
        ;;
    -h | --help)
        usage
        exit
        ;;
    *)
        usage >&2
        die "there is no option $1"
        ;;
    esac
    shift
done

steps_total=3
step "What the load comes from, and what gemmd is built from"
ensure_dependencies build
has wrk || { can_install && install_packages wrk; } || die "wrk is needed: install it first"
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import fastapi, numpy, uvicorn' 2>/dev/null || {
    /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
    note "installing FastAPI, uvicorn and NumPy into $venv"
    logged "$logs/load-venv.log" /usr/bin/python3 -m venv "$venv"
    logged "$logs/load-pip.log" "$venv/bin/pip" install fastapi 'uvicorn[standard]' numpy
}

# Triton's server comes with nvidia-pytriton, for x86-64, with a process for models in each version of
# Python. It finds the libraries that came with it from where the Python backend is, so it goes there.
# What else that package asks for is for its own interface, which is not used.
make_triton() {
    local version backends
    logged "$logs/triton-venv.log" /usr/bin/python3 -m venv "$triton" &&
        logged "$logs/triton-client.log" "$triton/bin/pip" install 'numpy<2' 'tritonclient[http]' &&
        logged "$logs/triton-pip.log" "$triton/bin/pip" install --only-binary :all: --no-deps nvidia-pytriton ||
        return
    version=$("$triton/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    backends=$triton/lib/python$version/site-packages/pytriton/tritonserver/backends/python
    cp "$backends/../../python_backend_stubs/$version/triton_python_backend_stub" "$backends" || return
    if ldd "$backends/triton_python_backend_stub" | grep -q 'libpython.*not found'; then
        can_install && install_packages "libpython$version" || return
    fi
    touch "$triton/ready"
}
if [ $gpu = yes ] && ! "$venv/bin/python" -c 'import cupy' 2>/dev/null; then
    toolkit=$(nvcc --version | sed -n 's/.*release \([0-9]*\).*/\1/p') || die "--gpu wants nvcc"
    note "installing CuPy into $venv"
    logged "$logs/load-cupy.log" "$venv/bin/pip" install "cupy-cuda${toolkit}x"
elif [ $gpu = no ] && [ ! -e "$triton/ready" ]; then
    note "installing Triton's server and client into $triton"
    rm -rf "$triton"
    make_triton || note "Triton cannot be had here: nothing is compared with it"
fi
[ $gpu = yes ] || [ ! -e "$triton/ready" ] || arguments+=(--triton "$triton")

step "The optimised build"
find_gpu here "gemmd runs on the CPU"
build release gemmd
build release bench_bare

step "Load"
"$venv/bin/python" $here/load.py --gemmd build/release/server/gemmd \
    --bare build/release/tests/bench/bench_bare --json "$json" "${arguments[@]}"
"$venv/bin/python" $here/plot.py "$json" >"${json%.json}.svg"
note "figures: $json; plot: ${json%.json}.svg"
