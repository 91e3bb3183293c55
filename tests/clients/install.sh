#!/usr/bin/env bash
# install.sh BUILD COMPILER - installs a build into a scratch folder, builds the example with what is
# there, by pkg-config and by CMake, runs it against the daemon, and uninstalls all of it again. Then
# makes the Debian package, where that can be made, and looks at what is in it.
set -euo pipefail

build=$1 compiler=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
daemon=
manifests=$(find "$build" -maxdepth 1 -name 'install_manifest*.txt')

on_exit() {
    [ -z "$daemon" ] || kill "$daemon" || :
    rm -f "$build"/install_manifest*.txt
    [ -z "$manifests" ] || mv "$work"/install_manifest*.txt "$build"
    rm -rf "$work"
}
trap on_exit EXIT

die() {
    echo "install.sh: $*" >&2
    exit 1
}

# Those of an installation that somebody made are kept.
[ -z "$manifests" ] || mv $manifests "$work"

prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/log" || die "cannot be installed: $(tail -n 3 "$work/log")"
for file in bin/gemmd bin/gemmctl include/gemmd.h include/gemmd_http.h lib/systemd/system/gemmd.service \
    share/man/man1/gemmd.1 share/man/man1/gemmctl.1 share/man/man3/libgemmd.3 \
    share/bash-completion/completions/gemmctl share/zsh/vendor-completions/_gemmctl \
    share/fish/vendor_completions.d/gemmctl.fish \
    share/doc/gemmd/{README.md,NOTICE,SECURITY.md,deploy/README.md,proto/PROTOCOL.md}; do
    [ -s "$prefix/$file" ] || die "there is no $file"
done

# The interface and nothing else.
library=$(find "$prefix" -name 'libgemmd.so')
strange=$(nm -D --defined-only "$library" | awk '$3 !~ /^gemmd_/ { print $3 }')
[ -z "$strange" ] || die "libgemmd.so exports $strange"

env -u GEMMD_BIN "$GEMMD_BIN" --listen 127.0.0.1:0 --log-level error >"$work/ready" &
daemon=$!
while [ ! -s "$work/ready" ]; do
    kill -0 $daemon || die "gemmd did not start"
    sleep 0.05
done
url=$(sed 's/^listening on //' "$work/ready")

check() {
    [ "$("$@" "$url" 2>"$work/errors" | tr '\n' ' ')" = "4 5 10 11 " ] || die "$* says: $(cat "$work/errors")"
    grep -q '^in [0-9.]* us$' "$work/errors" || die "$* has no time"
}

# By pkg-config, with and without the shared library (libcurl is shared all the same: a static one
# takes a dozen libraries more); as C++ too.
pc=$(dirname "$(find "$prefix" -name gemmd.pc)")
flags() {
    PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} pkg-config "$@" || die "pkg-config $* fails"
}
example=$root/clients/c/examples
"$compiler" -std=c99 -Wall -Wextra -Werror -pedantic "$example/matmul.c" -o "$work/shared" \
    $(PKG_CONFIG_LIBDIR=/nonexistent flags --cflags --libs gemmd) # without libcurl-dev
LD_LIBRARY_PATH=${library%/*} check "$work/shared"
"$compiler" $(flags --cflags gemmd) "$example/matmul.c" -o "$work/static" "${library%.so}.a" \
    $(flags --libs libcurl jansson) -pthread
check "$work/static"
! ldd "$work/static" | grep -q libgemmd || die "the static example needs libgemmd.so"
printf '#include <gemmd_http.h>\nint main() { return gemmd_dtype_size(GEMMD_F32) != 4; }\n' |
    c++ -std=c++11 -Wall -Wextra -Werror -pedantic -x c++ - -o "$work/cpp" $(flags --cflags --libs gemmd)
LD_LIBRARY_PATH=${library%/*} "$work/cpp"

# By CMake, after a move: what is installed names no folder of where it was made.
mv "$prefix" "$work/moved"
cmake -S "$example" -B "$work/example" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_C_COMPILER="$compiler" \
    >"$work/log" && cmake --build "$work/example" >>"$work/log" || die "$(tail -n 20 "$work/log")"
check "$work/example/matmul"
check "$work/example/matmul_static"
mv "$work/moved" "$prefix"

kill $daemon
wait $daemon || die "gemmd ended with $?"
daemon=
cmake --build "$build" --target uninstall >"$work/log" || die "$(tail -n 3 "$work/log")"
rest=$(find "$prefix" -type f -o -type l -o -name gemmd)
[ -z "$rest" ] || die "after uninstall there is $rest"

# The package.
if ! command -v dpkg-shlibdeps >/dev/null || ! command -v cpack >/dev/null; then
    echo "no dpkg-shlibdeps: the package is not tried"
    exit 0
fi
echo /of/cmake-install >"$build/install_manifest.txt" # which uninstall goes by
(cd "$build" && cpack -G DEB -B "$work/package" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip) >"$work/log" ||
    die "no package: $(tail -n 3 "$work/log")"
[ "$(cat "$build"/install_manifest*.txt)" = /of/cmake-install ] || die "uninstall would remove what the package installs"
rm "$build/install_manifest.txt"
deb=$(echo "$work"/package/*.deb)
dpkg-deb --raw-extract "$deb" "$work/deb"
for name in libc6 libcurl4 libjansson4; do
    grep -q "^Depends:.*\b$name\b" "$work/deb/DEBIAN/control" || die "the package does not depend on $name"
done
for script in postinst prerm postrm; do
    sh -n "$work/deb/DEBIAN/$script"
    [ -x "$work/deb/DEBIAN/$script" ] || die "$script cannot be run"
done
"$work/deb/usr/bin/gemmctl" --version
"$work/deb/usr/bin/gemmd" --version
