#!/usr/bin/env bash
# container.sh - builds deploy/Dockerfile without Docker, runs what came of it and asks it: by buildah,
# in a root of its own (chroot isolation), on a Debian that debootstrap makes. The image without CUDA,
# or that for GPUs with this machine's CUDA toolkit in the place of NVIDIA's base image. Takes ten
# minutes on two cores, nearly all of them to compile.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./tests/deploy/container.sh [--base FOLDER] [--gpus LIST]

  --base FOLDER  a bare Debian 12 that debootstrap made (minbase); one is made if it is not there
  --gpus LIST    the image for GPUs, with code for these, as 90a: it wants /usr/local/cuda, and is run
                 without a GPU

Wants root, buildah, debootstrap and curl; the exit status is 77 where they are not there. What is
tried is the commit that is checked out. What chroot isolation cannot show: limits of memory and
processes, a network of its own, and the seccomp filter of a container engine.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
. deploy/progress.sh
logs=$root/build/log
base= gpus= target=cpu
while [ $# -gt 0 ]; do
    case $1 in
    --base) base=${2:?--base wants a folder} && shift ;;
    --gpus) gpus=${2:?--gpus wants a list} target=gpu && shift ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

for tool in buildah debootstrap curl; do
    command -v $tool >/dev/null || {
        echo "skipped: there is no $tool"
        exit 77
    }
done
[ "$EUID" = 0 ] || {
    echo "skipped: it wants root"
    exit 77
}
[ $target = cpu ] || [ -x /usr/local/cuda/bin/nvcc ] || {
    echo "skipped: there is no /usr/local/cuda"
    exit 77
}

work=$(mktemp -d)
base=${base:-$work/base}
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
build() {
    buildah --root "$work/storage" --runroot "$work/run" "$@"
}
daemon=
on_exit() { # in the place of progress.sh's
    [ -z "$running" ] || end_group "$running" 10
    [ -z "$daemon" ] || end_group "$daemon" 15
    buildah --root "$work/storage" --runroot "$work/run" rm --all >/dev/null 2>&1 || :
    rm -rf --one-file-system "$work"
}

# The registry is this machine: nothing is fetched but packages.
make_base() {
    local container
    [ -d "$base/etc" ] || logged "$logs/container-base.log" debootstrap --variant=minbase bookworm "$base"
    container=$(build from scratch)
    build copy --quiet "$container" "$base" / >/dev/null
    build config --env PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    build commit --quiet "$container" localhost/base:12 >/dev/null
    build rm "$container" >/dev/null
}

build_image() {
    local mounts=()
    [ $target = cpu ] || mounts=(--volume /usr/local/cuda:/usr/local/cuda:ro)
    mkdir "$work/source"
    git archive HEAD | tar -x -C "$work/source"
    logged "$logs/container-build.log" buildah --root "$work/storage" --runroot "$work/run" bud \
        --file "$work/source/deploy/Dockerfile" --target $target --build-arg BASE=localhost/base:12 \
        --build-arg CUDA_BASE=localhost/base:12 --build-arg "GPUS=$gpus" "${mounts[@]}" --tag localhost/gemmd:try \
        "$work/source"
}

# What a container engine would be told: user, entry point, stop signal, variables, health check.
check_settings() {
    build inspect --type image localhost/gemmd:try >"$work/settings"
    /usr/bin/python3 - "$work/settings" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))["OCIv1"]["config"]
assert config["User"] == "65532:65532", config
assert config["Entrypoint"] == ["/usr/bin/gemmd"], config
assert config["StopSignal"] == "SIGTERM", config
assert "GEMMD_LISTEN=0.0.0.0:8080" in config["Env"], config
END
}

# Unless told otherwise the image for GPUs does not compute on the CPU: it says what is missing.
check_no_gpu() {
    local status=0
    [ ! -e /dev/nvidiactl ] || return 0
    build run --user 65532:65532 "$1" -- /usr/bin/gemmd >"$work/no-gpu" 2>&1 || status=$?
    [ $status = 3 ] && grep -q 'no NVIDIA GPU can be used here' "$work/no-gpu" ||
        die "without a GPU it ends with $status: $(cat "$work/no-gpu")"
}

# run_image PORT: in the image's own root, as its user, with its variables but the port.
run_image() {
    local container tick
    container=$(build from localhost/gemmd:try)
    [ $target = cpu ] || check_no_gpu "$container"
    : >"$logs/container-gemmd.log"
    setsid buildah --root "$work/storage" --runroot "$work/run" run --user 65532:65532 \
        --env "GEMMD_LISTEN=127.0.0.1:$1" --env GEMMD_BACKEND=auto --cap-drop=all "$container" -- /usr/bin/gemmd \
        >"$logs/container-gemmd.log" 2>&1 </dev/null &
    daemon=$!
    for ((tick = 0; tick < 300; tick++)); do
        ! grep -q '^listening on ' "$logs/container-gemmd.log" || break
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    curl -sS --fail "http://127.0.0.1:$1/healthz" >/dev/null || {
        cat "$logs/container-gemmd.log"
        die "gemmd does not answer in its container"
    }
    curl -sS --fail -d '[[1,2,3],[4,5,6]]' "http://127.0.0.1:$1/v1/transpose" | grep -qF '[[1,4],[2,5],[3,6]]' ||
        die "the answer is wrong"
    # The health check of the image, as an engine would call it.
    build run --user 65532:65532 --env "GEMMD_LISTEN=127.0.0.1:$1" "$container" -- /usr/bin/gemmd --probe
    check_process "$1"
}

# The daemon as the host sees it.
check_process() {
    local pid status
    pid=$(pgrep --full --uid 65532 '^/usr/bin/gemmd$')
    status=$(cat "/proc/$pid/status")
    for line in 'CapEff:	0000000000000000' 'NoNewPrivs:	1' 'Seccomp:	2' 'Uid:	65532'; do
        grep -qF "$line" <<<"$status" || die "its status has no line '$line'"
    done
    kill -TERM "$pid"
    local code=0
    wait "$daemon" || code=$?
    daemon=
    [ "$code" = 0 ] || die "after SIGTERM it ended with $code"
}

steps_total=3
step "A Debian to build on"
make_base
step "Building deploy/Dockerfile, target $target"
build_image || die "the image could not be built; see build/log/container-build.log"
check_settings
step "Running it"
run_image 18080
note "the image was built, answers, checks itself, and ends with status 0"
