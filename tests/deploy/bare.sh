#!/usr/bin/env bash
# bare.sh - tries the two commands of README.md on systems that have nothing: in a root of its own,
# made by debootstrap (minbase and git), of Debian 12 and 13 and of Ubuntu 24.04. What cannot be had
# here is skipped, in words. Each system takes as long as the commands do, and a minute to be made.
# Or a package of gemmd: whether it installs there, works, and goes again.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./tests/deploy/bare.sh [--roots FOLDER] [--tests ARGUMENTS] [--user] [SYSTEM...]
       ./tests/deploy/bare.sh [--roots FOLDER] --package FILE [SYSTEM...]

  --roots FOLDER     keep the bare systems there, to be copied by the next call
  --tests ARGUMENTS  of tests/run.sh (default: --quick)
  --user             the commands are given by a user without root, and root installs exactly the
                     packages that the first one asks for
  --package FILE     try this .deb, which `cpack -G DEB` makes in build/release, instead
  SYSTEM             debian-12, debian-13, ubuntu-24.04 (default: all of them)

What is tried is the commit that is checked out here. Wants root and debootstrap; packages come from
the mirror that this machine's apt-get uses, or else from debootstrap's own choice. The exit status
is 77 where all is skipped; details are in build/log/bare-SYSTEM.log.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
. deploy/progress.sh
logs=$root/build/log

roots=
arguments=--quick
user=no
package=
systems=()
while [ $# -gt 0 ]; do
    case $1 in
    --roots | --tests | --package)
        [ -n "${2:-}" ] || die "$1 wants a value"
        case $1 in
        --roots) roots=$2 ;;
        --tests) arguments=$2 ;;
        --package) package=$2 ;;
        esac
        shift
        ;;
    --user) user=yes ;;
    -h | --help)
        usage
        exit
        ;;
    debian-12 | debian-13 | ubuntu-24.04) systems+=("$1") ;;
    *)
        usage >&2
        die "there is no option or system $1"
        ;;
    esac
    shift
done
[ ${#systems[@]} -gt 0 ] || systems=(debian-13 debian-12 ubuntu-24.04)

work=$(mktemp -d)
roots=${roots:-$work/roots}
mkdir -p "$roots"
roots=$(cd "$roots" && pwd -P)

on_exit() { # in the place of progress.sh's
    [ -z "$running" ] || end_group "$running" 10
    rm -rf --one-file-system "$work"
}

suite_of() {
    case $1 in
    debian-12) echo bookworm ;;
    debian-13) echo trixie ;;
    ubuntu-24.04) echo noble ;;
    esac
}

# lacking: prints what keeps this machine from trying any system, if something does.
lacking() {
    local tool
    if [ "$EUID" != 0 ]; then
        echo "it takes root"
        return
    fi
    for tool in debootstrap git unshare chroot; do
        command -v $tool >/dev/null || {
            echo "there is no $tool"
            return
        }
    done
    unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null || echo "nothing may be mounted here"
}

# The mirror that this machine takes packages of Debian or Ubuntu from; nothing where it takes none.
mirror_of() {
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 2>/dev/null |
        awk -F '|' -v who="$1" 'tolower($1) == who && tolower($2) == who { print $3; exit }'
}

# find_keyring debian|ubuntu: sets $keyring to the keys that sign its packages. Debian 13 has those
# of Ubuntu in a package.
find_keyring() {
    keyring=/usr/share/keyrings/$1-archive-keyring.gpg
    [ ! -f "$keyring" ] || return 0
    keyring=$roots/keys$keyring
    [ ! -f "$keyring" ] || return 0
    [ "$1" = ubuntu ] && make_system debian-13 || return
    inside "$roots/debian-13" sh -c 'cd /tmp && apt-get -q update && apt-get -q download ubuntu-keyring' \
        >"$logs/bare-keys.log" 2>&1 || return
    dpkg-deb -x "$roots"/debian-13/tmp/ubuntu-keyring_*.deb "$roots/keys"
    rm "$roots"/debian-13/tmp/ubuntu-keyring_*.deb
    [ -f "$keyring" ]
}

# make_system SYSTEM: $roots/SYSTEM is there when it returns true; else $why says what is not.
make_system() {
    local new=$roots/$1.new suite mirror keyring recipe=/usr/share/debootstrap/scripts
    [ ! -d "$roots/$1" ] || return 0
    suite=$(suite_of "$1")
    mirror=$(mirror_of "${1%-*}")
    why="there are no keys to check the packages of ${1%-*} with"
    find_keyring "${1%-*}" || return
    [ -e "$recipe/$suite" ] && recipe= || case $1 in
    ubuntu*) recipe=$recipe/gutsy ;; # of which the later ones are links
    *) recipe=$recipe/sid ;;
    esac
    why="debootstrap failed: see $logs/bare-$1-make.log"
    note "making a bare $1"
    rm -rf --one-file-system "$new"
    logged "$logs/bare-$1-make.log" debootstrap --variant=minbase --include=git --force-check-gpg \
        --keyring="$keyring" --components="$([[ $1 == debian* ]] && echo main || echo main,universe)" \
        "$suite" "$new" "$mirror" $recipe || return
    mv "$new" "$roots/$1"
}

# inside FOLDER COMMAND...: in processes, mounts and an environment of its own, with the network of
# this machine. All that it starts ends with it.
inside() {
    local folder=$1
    shift
    unshare --mount --pid --fork --kill-child bash -euc '
        cd "$1"
        mount -t proc proc proc
        mount --rbind /sys sys
        mount -t tmpfs none dev
        for name in null zero full random urandom tty; do
            touch dev/$name
            mount --bind /dev/$name dev/$name
        done
        mkdir dev/shm
        mount -t tmpfs none dev/shm
        ln -s /proc/self/fd dev/fd
        cp -L /etc/resolv.conf etc/resolv.conf
        shift
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
            chroot . "$@"' inside "$folder" "$@"
}

# give FOLDER COMMAND: one of the two, in the checkout.
give() {
    local start=$SECONDS status=0
    if [ $user = no ]; then
        inside "$1" sh -c "cd /gemmd && $2" || status=$?
    else
        inside "$1" su -s /bin/sh -c "cd /gemmd && $2" ann || status=$?
    fi
    echo "$2: exit status $status after $((SECONDS - start)) s"
    return $status
}

# install_what_was_asked FOLDER LOG: by root, the packages that a user was last told to have.
install_what_was_asked() {
    local packages
    packages=$(sed -n 's/.*apt-get install --no-install-recommends //p' "$2" | tail -n 1)
    [ -n "$packages" ] || return
    echo "root installs $packages"
    inside "$1" sh -c "apt-get -q update && DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y install --no-install-recommends $packages" >"$work/installed" 2>&1
}

# try SYSTEM LOG: both commands, each of which must end well.
try() {
    local folder=$work/$1 command
    cp -a "$roots/$1" "$folder" && git clone --quiet "$root" "$folder/gemmd" || return
    [ $user = no ] || inside "$folder" sh -c 'useradd --create-home ann && chown -R ann: /gemmd' || return
    for command in './deploy/quickstart.sh --once' "./tests/run.sh $arguments"; do
        give "$folder" "$command" && continue
        [ $user = yes ] && install_what_was_asked "$folder" "$2" && give "$folder" "$command" || return
    done
}

# try_package SYSTEM: installs it, has gemmctl ask the daemon, and removes it.
try_package() {
    local folder=$work/$1
    cp -a "$roots/$1" "$folder" && cp "$package" "$folder/gemmd.deb" || return
    inside "$folder" sh -euxc '
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update
        apt-get -q -y install --no-install-recommends /gemmd.deb
        gemmd --listen 127.0.0.1:0 >/tmp/out 2>/tmp/log & # the ports of this machine are shared
        daemon=$!
        while ! grep -q listening /tmp/out; do
            kill -0 $daemon || cat /tmp/log
            kill -0 $daemon
            sleep 0.1
        done
        export GEMMD_URL=$(sed "s/^listening on //" /tmp/out)
        test "$(printf "1,2\n3,4\n" | gemmctl transpose -)" = "$(printf "1,3\n2,4")"
        gemmctl devices
        ldconfig -p | grep -F libgemmd.so
        for file in bin/gemmd bin/gemmctl lib/systemd/system/gemmd.service include/gemmd.h lib/libgemmd.a; do
            test -s /usr/$file
        done
        kill $daemon
        wait $daemon
        apt-get -q -y purge gemmd
        test ! -e /usr/bin/gemmctl -a ! -e /usr/lib/cmake/gemmd'
}

mkdir -p "$logs"
steps_total=${#systems[@]}
good=0 bad=0 results=
for system in "${systems[@]}"; do
    step "$system"
    log=$logs/bare-$system.log
    why=$(lacking)
    if [ -n "$why" ] || ! make_system "$system"; then
        note "skipped: $why"
        results+="$system: skipped: $why"$'\n'
    elif [ -n "$package" ]; then
        if try_package "$system" 2>&1 | tee "$log"; then
            good=$((good + 1))
            results+="$system: the package installs, works and goes again"$'\n'
        else
            bad=$((bad + 1))
            results+="$system: FAILED: see $log"$'\n'
        fi
    elif try "$system" "$log" 2>&1 | tee "$log"; then
        good=$((good + 1))
        results+="$system: both commands work"$'\n'
    elif grep -q 'Failed to fetch .*libmicrohttpd.* 404 ' "$log"; then # some mirrors have no sources
        note "skipped: its mirror lacks the source of libmicrohttpd that its index names"
        results+="$system: skipped: its mirror lacks the source of libmicrohttpd"$'\n'
    else
        bad=$((bad + 1))
        results+="$system: FAILED: see $log"$'\n'
    fi
    rm -rf --one-file-system "${work:?}/$system"
done
printf %s "$results"
[ $bad = 0 ] || exit 1
[ $good != 0 ] || exit 77
