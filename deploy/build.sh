# build.sh - sourced by deploy/quickstart.sh and tests/run.sh: finds out about CUDA and a GPU, and
# builds one of the presets of CMakePresets.json in build/PRESET.
#
# Expects progress.sh, deps.sh, and $root, which is the working directory.

cuda_arguments=()
has_gpu=no

# Says in a line each what is not there, and what that means.
find_gpu() {
    local capabilities
    has nvcc || PATH=$PATH:/usr/local/cuda/bin
    has nvcc || note "no nvcc: gemmd is built without CUDA"
    capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) ||
        capabilities=''
    if [ -z "$capabilities" ]; then
        note "no NVIDIA GPU: ${1}"
        return
    fi
    has_gpu=yes
    # 9.0 has instructions that only code for 90a may use.
    cuda_arguments=("-DCMAKE_CUDA_ARCHITECTURES=$(sort -u <<<"$capabilities" | tr -d . |
        sed 's/^90$/90a/' | paste -sd ';')")
    note "GPU: $(nvidia-smi --query-gpu=name --format=csv,noheader | sort -u | paste -sd ',')"
}

# build PRESET [TARGET]: all that the preset builds, or the target alone.
build() {
    local preset=$1 target=${2:-all} start=$SECONDS cache=$root/build/$1/CMakeCache.txt
    # A cache from before the checkout was moved names folders that are no more.
    if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
        rm -rf "$root/build/$preset"
    fi
    ! has ninja || export CMAKE_GENERATOR=Ninja
    logged "$logs/$preset-configure.log" cmake --preset "$preset" "${cuda_arguments[@]}" &&
        logged "$logs/$preset-build.log" cmake --build "build/$preset" --target "$target" \
            --parallel "$(nproc)" || return 1
    note "built in $((SECONDS - start)) s, in build/$preset"
}
