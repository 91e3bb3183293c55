#!/usr/bin/env bash
# image.sh - what deploy/Dockerfile runs: builds gemmd and lays out a folder with the daemon and
# all that it needs to run, which becomes an image. Works outside of containers as well.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./deploy/image.sh dependencies
       ./deploy/image.sh build FOLDER [CMAKE-ARGUMENT...]

The first installs what gemmd is built from. The second builds it, with these arguments for CMake,
and fills FOLDER, which must not exist: the daemon, the libraries that it is linked to, the
licences of both, and a few files of /etc. With CUBLAS=1 in the environment cuBLAS goes in too.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
. deploy/progress.sh
. deploy/deps.sh
. deploy/build.sh

user=65532 # a number that no host gives to anybody

# put FILE PATH: a copy of it, or of what it links to, at that path of the image.
put() {
    install -D --mode="$(stat --dereference --format=%a "$1")" "$1" "$image$2"
}

# The packages that the image's files come from tell scanners of known faults what is in it.
put_package() {
    local package
    package=$(dpkg-query --search "$(realpath "$1")" "$1" 2>/dev/null | sed -n '1s/: .*//p') || :
    package=${package%%:*}
    [ -n "$package" ] || return 0
    mkdir -p "$image/var/lib/dpkg/status.d"
    dpkg-query --status "$package" >"$image/var/lib/dpkg/status.d/$package"
    put "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/copyright"
}

# put_libraries PROGRAM: those that it is linked to, where the loader looks by itself; and the
# loader, at the path that programs name.
put_libraries() {
    local name path
    ! ldd "$1" | grep 'not found' || die "libraries are missing"
    while read -r name path; do
        put "$path" "$name"
        put_package "$path"
    done < <(ldd "$1" | awk -v folder="$libraries" '
        $2 == "=>" { print folder "/" $1, $3 }
        $1 ~ /^\// { print $1, $1 }')
}

# What is part of the C library today, but what NVIDIA's libraries, the driver's too, still name.
put_parts_of_libc() {
    local name
    for name in libdl.so.2 libpthread.so.0 librt.so.1; do
        put "$(gcc -print-file-name=$name)" "$libraries/$name"
    done
}

# The newest that is there, which gemmd opens by its name.
put_cublas() {
    local name path
    for name in libcublas libcublasLt; do
        path=$(find -L /usr/local/cuda/lib64 -maxdepth 1 -name "$name.so.[0-9][0-9]" | sort | tail -n 1)
        [ -n "$path" ] || die "there is no $name here"
        put "$path" "$libraries/${path##*/}"
    done
    [ ! -f /usr/local/cuda/EULA.txt ] || put /usr/local/cuda/EULA.txt /usr/share/doc/cublas/copyright
}

# Whether all that is linked, or will be opened, finds what it needs within the image.
check_image() {
    local file loader
    loader=$(ldd build/release/server/gemmd | awk '$1 ~ /^\// { print $1 }')
    [ "$EUID" = 0 ] || return 0 # may not see it as the daemon will
    for file in /usr/bin/gemmd "$image$libraries"/*; do
        logged "$logs/image-check.log" chroot "$image" "$loader" --list "${file#"$image"}" ||
            die "$file lacks a library"
    done
    chroot "$image" /usr/bin/gemmd --version >/dev/null || die "gemmd does not start in the image"
}

put_etc() {
    echo "gemmd:x:$user:$user::/nonexistent:/nonexistent" >"$image/etc/passwd"
    echo "gemmd:x:$user:" >"$image/etc/group"
    echo 'hosts: files dns' >"$image/etc/nsswitch.conf" # for a name in --listen
    put /etc/os-release /etc/os-release
    # By this file the container runtime for NVIDIA GPUs knows in which folder the loader looks.
    put /etc/debian_version /etc/debian_version
}

fill_image() {
    mkdir -p "$image"/usr/{bin,lib,lib64} "$image/etc"
    ln -s usr/bin usr/lib usr/lib64 "$image/"
    install -d --mode=1777 "$image/tmp"
    # Not stripped: the simulator reads the symbols and line numbers of its own program.
    logged "$logs/image-install.log" cmake --install build/release --component daemon \
        --prefix "$image/usr" || die "gemmd could not be installed"
    put LICENSE /usr/share/doc/gemmd/copyright
    put NOTICE /usr/share/doc/gemmd/NOTICE
    [ ! -d "$deps/share/doc" ] || cp -r "$deps/share/doc" "$image/usr/share/" # linked statically
    put_libraries build/release/server/gemmd
    ! grep -qx 'GEMMD_CUDA:STRING=ON' build/release/CMakeCache.txt || put_parts_of_libc
    [ "${CUBLAS:-0}" = 0 ] || put_cublas
    put_etc
    check_image
    note "$image: $(du -sh "$image" | cut -f 1), of which gemmd $(du -h "$image/usr/bin/gemmd" | cut -f 1)"
}

steps_total=1
case ${1:-} in
dependencies)
    [ $# = 1 ] || die "dependencies takes no argument"
    step "What gemmd is built from"
    ensure_dependencies build
    ;;
build)
    [ $# -ge 2 ] || die "build wants a folder"
    image=$(realpath --canonicalize-missing "$2")
    [ ! -e "$image" ] || die "$2 is there already"
    shift 2
    cuda_arguments=(-DGEMMD_TESTS=OFF -DGEMMD_CLIENTS=OFF "$@")
    step "Building gemmd, and what an image of it consists of"
    build release gemmd || die "gemmd could not be built"
    libraries=/usr/lib/$(gcc -dumpmachine)
    fill_image
    ;;
*)
    usage >&2
    exit 1
    ;;
esac
