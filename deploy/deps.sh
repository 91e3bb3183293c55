# deps.sh - sourced by deploy/quickstart.sh, deploy/image.sh and tests/run.sh: sees to it that all
# that gemmd is built from is there, and says what is not.
#
# One table lists what is needed, how to see that it is there, and the Debian and Ubuntu packages
# that bring it. What is there is never installed again: a machine that has everything needs no
# network, no root and no apt-get, and is done in a second.
#
# libmicrohttpd is the exception. Releases before 1.0.1 have faults that a server cannot work
# around, and Debian 12 and Ubuntu 24.04 have such a release. There it is built as a static
# library, into build/deps, from the source package of a later release of the same system, which
# apt-get fetches from the machine's own mirror and checks with the system's own keys.
#
# Expects progress.sh, and $root: the checkout.

microhttpd_needed=1.0.1
viewer='flask-swagger-ui==5.34.0 --hash=sha256:63e4ecfee6345ca746c11c5341c6f2a1cbe271e518aac1659889cd3905b1110f'
deps=$root/build/deps
logs=$root/build/log
export PKG_CONFIG_PATH=$deps/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

# requirements build|tests: what it is | how to see that it is there | packages
requirements() {
    cat <<'END'
C and C++ compilers|has_compilers|gcc g++ libc6-dev
CMake 3.22 or later|has_cmake|cmake
ninja or make|has_generator|ninja-build
pkg-config|has pkg-config|pkg-config
jansson 2.13 or later (JSON documents)|pkg-config --atleast-version=2.13 jansson|libjansson-dev
nettle 3.6 or later (hashes of keys)|pkg-config --atleast-version=3.6 nettle|nettle-dev
OpenBLAS (matrix products on the CPU)|has_openblas|libopenblas-pthread-dev
curl|has curl|curl ca-certificates
GnuTLS 3.7 or later (TLS)|pkg-config --atleast-version=3.7 gnutls|libgnutls28-dev
libcurl 7.85 or later (the clients in C)|pkg-config --atleast-version=7.85 libcurl|libcurl4-openssl-dev
Python 3 with PyYAML and venv (the contract)|has_python yaml ensurepip|python3 python3-yaml python3-venv
END
    echo "libmicrohttpd $microhttpd_needed or later (HTTP)|microhttpd_settled|$(microhttpd_packages | paste -sd ' ')"
    if [ "$1" = tests ]; then
        cat <<'END'
numpy and pytest for Python 3|has_python numpy pytest|python3-numpy python3-pytest
openssl (certificates for tests of TLS)|has openssl|openssl
END
    fi
}

has() {
    command -v "$1" >/dev/null 2>&1
}

has_compilers() {
    compiles gcc c stdio.h && compiles g++ c++ charconv
}

# compiles COMPILER LANGUAGE HEADER
compiles() {
    printf '#include <%s>\n' "$3" | "$1" -x "$2" -fsyntax-only - 2>/dev/null
}

has_cmake() {
    has cmake && at_least "$(cmake --version | awk 'NR == 1 { print $3 }')" 3.22
}

has_generator() {
    has ninja || has make
}

has_openblas() {
    pkg-config --exists openblas # as CMake asks: another library's cblas.h does not count
}

# has_python MODULE...: the system's Python, with these.
has_python() {
    [ -x /usr/bin/python3 ] && /usr/bin/python3 - "$@" <<'END' 2>/dev/null
import sys
from importlib.util import find_spec
assert all(map(find_spec, sys.argv[1:]))
END
}

# Of ours, one that was built without TLS counts as none.
has_microhttpd() {
    pkg-config --atleast-version=$microhttpd_needed libmicrohttpd &&
        { [ ! -f "$deps/lib/pkgconfig/libmicrohttpd.pc" ] ||
            grep -q gnutls "$deps/lib/pkgconfig/libmicrohttpd.pc"; }
}

# Whether it is there, or will be built from source by what is there.
microhttpd_settled() {
    has_microhttpd || { has make && [ "$(microhttpd_packages)" != libmicrohttpd-dev ]; }
}

# Its package where that is new enough, else what builds it; both where apt-get has no lists yet.
microhttpd_packages() {
    local candidate
    candidate=$(microhttpd_candidate)
    if ! can_install || dpkg --compare-versions "$candidate" ge $microhttpd_needed 2>/dev/null; then
        echo libmicrohttpd-dev
    else
        echo make
        [ -n "$candidate" ] || echo libmicrohttpd-dev
    fi
}

microhttpd_candidate() {
    candidate_of libmicrohttpd-dev
}

# The version of a package that apt-get would install; nothing where it knows none.
candidate_of() {
    apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# at_least A B: version A is B or later.
at_least() {
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# ensure_dependencies build|tests: all is there when it returns, else it stops the script.
ensure_dependencies() {
    read_system
    find_missing "$1"
    if [ -n "$missing_packages" ]; then
        can_install || stop_and_list
        need_root $missing_packages
        fetch_lists
        find_missing "$1" # the lists say which libmicrohttpd there is
        install_packages $missing_packages
        find_missing "$1"
        [ -z "$missing_packages" ] || stop_and_list
    fi
    has_microhttpd || ensure_microhttpd
    fetch_viewer
    offer "the console" has_d3 libjs-d3 || :
    note "all there: $(gcc --version | head -n 1), libmicrohttpd $(pkg-config --modversion libmicrohttpd)"
}

# From /etc/os-release, in which ID is "debian" or "ubuntu" on the systems known here.
read_system() {
    system_id='' system_codename='' system_name='this system'
    [ ! -r /etc/os-release ] || {
        system_id=$(. /etc/os-release && echo "${ID:-}")
        system_codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
        system_name=$(. /etc/os-release && echo "${PRETTY_NAME:-this system}")
    }
}

# Sets $missing_packages, and $missing_list for people.
find_missing() {
    local what check packages
    missing_packages='' missing_list=''
    while IFS='|' read -r what check packages; do
        $check </dev/null >/dev/null 2>&1 && continue
        missing_packages="$missing_packages $packages"
        missing_list="$missing_list$(printf '        %-40s %s' "$what" "$packages")"$'\n'
    done < <(requirements "$1")
}

can_install() {
    has apt-get && [[ $system_id == debian || $system_id == ubuntu ]]
}

stop_and_list() {
    {
        echo "On $system_name these have to be there first (the names are those of Debian's packages):"
        printf %s "$missing_list"
        has_d3 || echo "and for the console, which is left out without it: libjs-d3"
        echo "Install them and run this again. Nothing was changed."
    } >&2
    exit 1
}

# as_root LOG COMMAND...: sudo stays in the foreground, since it may ask for a password.
as_root() {
    local log=$1 status=0 reporter
    if [ "$EUID" = 0 ]; then
        logged "$@"
        return
    fi
    shift
    mkdir -p "${log%/*}"
    report "$log" &
    reporter=$!
    sudo "$@" >"$log" 2>&1 </dev/null || status=$?
    end_report "$reporter"
    [ "$status" = 0 ] || show_failure "$status" "$log" "$@"
    return "$status"
}

apt_get() {
    as_root "$logs/apt-$1.log" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 --no-install-recommends "$@"
}

need_root() {
    [ "$EUID" != 0 ] || return 0
    ! { has sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; } || return 0
    die "installing packages needs root: run this as root or where sudo may be used, or run
    apt-get update && apt-get install --no-install-recommends $*$(has_d3 || echo " libjs-d3")
as root, then this again"
}

fetch_lists() {
    [ -z "${lists_fetched:-}" ] || return 0
    apt_get update || note "going on with the lists of packages that are there"
    lists_fetched=yes
}

install_packages() {
    need_root "$@"
    fetch_lists
    note "installing: $*"
    apt_get install "$@" || die "the packages could not be installed"
}

ensure_microhttpd() {
    local candidate
    can_install || stop_and_list
    candidate=$(microhttpd_candidate) || :
    note "building libmicrohttpd from source: $system_name has ${candidate:-none}," \
        "$microhttpd_needed is needed"
    build_microhttpd
    has_microhttpd || die "libmicrohttpd $microhttpd_needed or later is still not found"
}

# fetch_prometheus: promtool and prometheus, for tests alone. They come in one package, from Debian 13
# on in two. These are not installed, since that would start a service on port 9090: the programs are
# unpacked into build/prometheus. False where they cannot be had.
fetch_prometheus() {
    local work=$root/build/prometheus package packages=prometheus
    [ -z "$(prometheus_here)" ] || return 0
    can_install && [ -n "$(candidate_of prometheus)" ] || return 1
    rm -rf "$work"
    mkdir -p "$work"
    note "fetching prometheus, to be run from build/prometheus"
    [ -z "$(candidate_of promtool)" ] || packages+=" promtool"
    logged "$logs/prometheus.log" env -C "$work" apt-get -q -o Acquire::Retries=3 download $packages || :
    for package in "$work"/*.deb; do
        [ ! -f "$package" ] || dpkg-deb -x "$package" "$work/unpacked" || :
    done
    mv "$work"/unpacked/usr/bin/{prometheus,promtool} "$work" 2>/dev/null || :
    rm -rf "$work"/*.deb "$work/unpacked"
    [ -n "$(prometheus_here)" ]
}

# What there is of them: installed, or else unpacked.
prometheus_here() {
    (PATH=$PATH:$root/build/prometheus && command -v promtool && command -v prometheus)
}

build_microhttpd() {
    local suite component work=$root/build/microhttpd
    case $system_id in
    debian) suite=trixie component=main ;;
    ubuntu) suite=resolute component=universe ;;
    esac
    rm -rf "$work"
    mkdir -p "$work"
    fetch_source libmicrohttpd $suite $component /usr/share/keyrings/$system_id-archive-keyring.gpg
    tar -xf "$work"/libmicrohttpd_*.orig.tar.?z -C "$work" --one-top-level=source \
        --strip-components=1 || die "the source of libmicrohttpd could not be unpacked"
    {
        logged "$logs/microhttpd-configure.log" env -C "$work/source" ./configure \
            --prefix="$deps" --with-pic --disable-shared --disable-doc --disable-examples \
            --disable-curl --enable-https --disable-postprocessor --disable-bauth --disable-dauth &&
            logged "$logs/microhttpd-make.log" make -C "$work/source" -j "$(nproc)" &&
            logged "$logs/microhttpd-install.log" make -C "$work/source" install DESTDIR="$work/stage"
    } || die "libmicrohttpd could not be built"
    install -D --mode=644 "$work/source/COPYING" "$work/stage$deps/share/doc/libmicrohttpd/copyright"
    # The installed files may be moved together with the checkout.
    sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$work/stage$deps"/lib/pkgconfig/*.pc
    rm -rf "$deps"
    mv "$work/stage$deps" "$deps"
    rm -rf "$work"
}

# bring PACKAGE: installs it, if that is possible here without a question.
bring() {
    can_install && [ -n "$(candidate_of "$1")" ] &&
        { [ "$EUID" = 0 ] || { has sudo && sudo -n true 2>/dev/null; }; } || return 1
    note "installing: $1"
    apt_get install "$1"
}

# offer WHAT CHECK PACKAGE: installs what gemmd can do without, if that is possible here.
offer() {
    $2 || bring "$3" || {
        note "no $3: $1 is left out"
        return 1
    }
}

# d3 of Debian's and Ubuntu's releases is one and the same, 3.5.17.
has_d3() {
    [ -f /usr/share/javascript/d3/d3.min.js ]
}

# offer_chromium: for tests alone. The headless shell takes half of Chromium's processor time; Chromium
# serves where there is no package of the shell.
offer_chromium() {
    has chromium-headless-shell || bring chromium-headless-shell ||
        offer "the test of the console" "has chromium" chromium
}

# Swagger UI, which shows the contract at /docs, in the package of Python's registry that carries its
# files: this release and no other, by its checksum.
fetch_viewer() {
    local work=$root/build/viewer.new
    [ "$(cat "$root/build/viewer/release" 2>/dev/null)" != "$viewer" ] || return 0
    rm -rf "$work" "$root/build/viewer"
    mkdir -p "$work" "$logs"
    echo "$viewer" >"$work/release"
    if /usr/bin/python3 -m venv "$work/venv" >"$logs/viewer.log" 2>&1 &&
        "$work/venv/bin/python" -m pip --disable-pip-version-check --timeout 20 --retries 1 install \
            --no-deps --only-binary :all: --require-hashes --requirement "$work/release" \
            --target "$work" >>"$logs/viewer.log" 2>&1; then
        rm -rf "$work/venv"
        mv "$work" "$root/build/viewer"
    else
        rm -rf "$work"
        note "Swagger UI could not be fetched: gemmd is built without /docs"
    fi
}

# fetch_source PACKAGE SUITE COMPONENT KEYRING: into $work, from the mirrors this system uses.
fetch_source() {
    local mirror apt
    apt=(apt-get -q -o Acquire::Retries=3 -o Dir::Etc::SourceList="$work/sources.list"
        -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists"
        -o Dir::Cache="$work/cache")
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    while read -r mirror; do
        echo "deb-src [signed-by=$4] $mirror $2 $3" >"$work/sources.list"
        logged "$logs/source-update.log" "${apt[@]}" update &&
            logged "$logs/source-download.log" env -C "$work" "${apt[@]}" source --download-only "$1" &&
            (cd "$work" && source_checksums | sha256sum --check --quiet) && return
    done < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(CODENAME)' |
        awk -v suite="$system_codename" '($2 == suite || $3 == suite) && !seen[$1]++ { print $1 }')
    die "the source of $1 could not be fetched from the mirrors of $system_name"
}

# What the signed description (.dsc) says of the upstream archive, as sha256sum reads it.
source_checksums() {
    awk '/^[^ ]/ { in_list = $1 == "Checksums-Sha256:" }
         in_list && $3 ~ /\.orig\.tar\.[a-z0-9]+$/ { print $1 "  " $3 }' ./*.dsc
}
