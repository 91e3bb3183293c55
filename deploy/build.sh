# build.sh - sourced by deploy/quickstart.sh, deploy/image.sh and tests/run.sh: finds out about
# CUDA and a GPU, and builds one of the presets of CMakePresets.json in build/PRESET.
#
# nvcc takes a minute for each kind of GPU, so whoever only wants to use gemmd here gets the code
# for the GPU that is here, or none; tests and images get it for all kinds.
#
# Expects progress.sh, deps.sh, and $root, which is the working directory.

cuda_arguments=() # of CMake, for the release build
has_gpu=no

# The compute capabilities of the GPUs that are here, as 86, one per line; nothing without a GPU.
gpus_here() {
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . |
        grep -x '[0-9][0-9]*' | sort -nu
}

# Those of them that this nvcc can compile for, as GEMMD_CUDA_ARCHITECTURES wants them.
architectures_of() {
    local known
    has nvcc && known=$(nvcc --list-gpu-arch 2>/dev/null) || return 0
    # 9.0 has instructions that only code for 90a may use.
    printf '%s\n' "$@" | grep -xF "$(sed 's/^compute_//' <<<"$known")" | sed 's/^90$/90a/' |
        paste -sd ';'
}

# find_gpu here|one|all WITHOUT: whether there is a GPU, and for which kinds to build: those that are
# here, or none; those that are here, or one, compiled fast, since a test only wants to see that the
# kernels compile; all. Says in a line each what is not there, and with WITHOUT what that means.
find_gpu() {
    local gpus architectures=''
    has nvcc || PATH=$PATH:/usr/local/cuda/bin
    has nvcc || note "no nvcc: gemmd is built without CUDA"
    gpus=$(gpus_here) || gpus=''
    if [ -n "$gpus" ]; then
        has_gpu=yes
        note "GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader | sort -u | paste -sd ',')"
        architectures=$(architectures_of $gpus) || architectures=''
    else
        note "no NVIDIA GPU: $2"
    fi
    cuda_arguments=(-DGEMMD_CUDA=AUTO -UGEMMD_CUDA_FAST_COMPILE)
    if [ "$1" = one ] && [ -z "$gpus" ]; then
        architectures=$(architectures_of 90) || architectures='' # some kernels are written for it alone
        cuda_arguments=(-DGEMMD_CUDA=AUTO -DGEMMD_CUDA_FAST_COMPILE=ON)
    fi
    if [ "$1" = here ] && [ -z "$gpus" ]; then
        cuda_arguments=(-DGEMMD_CUDA=OFF)
    elif [ "$1" != all ] && [ -n "$architectures" ]; then
        cuda_arguments+=("-DGEMMD_CUDA_ARCHITECTURES=$architectures")
    else # all that nvcc knows, or a GPU that it does not: PTX may do for that
        cuda_arguments+=(-UGEMMD_CUDA_ARCHITECTURES)
    fi
}

# build PRESET [TARGET...]: all that the preset builds, or the targets alone. What has sanitizers takes
# the kernels for the simulator from the release build: their hooks are their own sanitizer, and they
# are a third of the work.
build() {
    local preset=$1 start=$SECONDS cache=$root/build/$1/CMakeCache.txt arguments=()
    shift
    # A cache from before the checkout was moved names folders that are no more.
    if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
        rm -rf "$root/build/$preset"
    fi
    ! has ninja || export CMAKE_GENERATOR=Ninja
    case $preset in
    release) arguments=("${cuda_arguments[@]}") ;;
    *) arguments=("-DGEMMD_SIMT_FROM=$root/build/release") ;;
    esac
    logged "$logs/$preset-configure.log" cmake --preset "$preset" "${arguments[@]}" &&
        logged "$logs/$preset-build.log" cmake --build "build/$preset" --target "${@:-all}" \
            --parallel "$(nproc)" || return 1
    note "built in $((SECONDS - start)) s, in build/$preset"
}
