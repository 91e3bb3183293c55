#!/usr/bin/env bash
# test_deps.sh - which packages deploy/deps.sh asks for on machines that lack something: a machine
# is played by functions in the place of the programs that tell what it has.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

# asks SYSTEM CANDIDATE TOOLS WANTED: of a machine of that system whose apt-get would install that
# libmicrohttpd ("" where it has no lists), with all that gemmd is built from but libmicrohttpd and
# those of ninja and make that TOOLS leaves out. It has no root, and asks for these packages.
asks() {
    local system=$1 offered=$2 tools=" $3 awk curl pkg-config apt-get " said
    said=$(
        . "$checkout/deploy/progress.sh"
        trap - EXIT
        . "$checkout/deploy/deps.sh"
        read_system() { system_id=$system system_name=$system system_codename=one; }
        has() { [[ $tools == *" $1 "* ]]; }
        for check in has_compilers has_cmake has_openblas has_python pkg-config; do
            eval "$check() { [ \"\${2:-}\" != libmicrohttpd ]; }"
        done
        apt-cache() { [ -z "$offered" ] || printf "  Candidate: %s\n" "$offered"; }
        dpkg() { [ "$1 $3" = "--compare-versions ge" ] && [ "$2" != "" ] && at_least "$2" "$4"; }
        need_root() { echo "$*" && exit; }
        stop_and_list() { printf %s "$missing_list" && exit; }
        build_microhttpd() { echo "build it" && exit; }
        fetch_viewer() { :; }
        offer() { :; }
        ensure_dependencies build
    )
    said=$(sed 's/.*(HTTP) *//; /^ *building libmicrohttpd/d' <<<"$said" | tail -n 1)
    [ "$said" = "$4" ] && return
    printf '%s with libmicrohttpd %s and %s: "%s" asked for, not "%s"\n' "$1" "${2:-unknown}" "$3" "$said" "$4"
    failed=$((failed + 1))
}

asks debian 0.9.75-6 '' 'ninja-build make'
asks debian 0.9.75-6 ninja make
asks debian 0.9.75-6 'ninja make' 'build it'
asks ubuntu 1.0.1-1 'ninja make' libmicrohttpd-dev
asks debian 1.0.1-2 '' 'ninja-build libmicrohttpd-dev'
asks debian '' ninja 'make libmicrohttpd-dev'
asks fedora '' 'ninja make' libmicrohttpd-dev

# fetches SYSTEM CANDIDATE HERE WANTED [PROMTOOL]: whether fetch_prometheus asks apt-get for the package where that
# offers a version, "" being none, and both programs are HERE or not; and whether both are here then. promtool is in a
# package of its own where that has a version, PROMTOOL.
fetches() {
    local system=$1 offered=$2 here=$3 split=${5:-} said
    rm -rf "$root/build/prometheus"
    said=$(
        . "$checkout/deploy/progress.sh"
        trap - EXIT
        . "$checkout/deploy/deps.sh"
        system_id=$system
        has() { [ "$1" = apt-get ]; }
        apt-cache() {
            [ "$2" = prometheus ] || local offered=$split
            [ -z "$offered" ] || printf "  Candidate: %s\n" "$offered"
        }
        prometheus_here() {
            [ "$here" = no ] || echo "$here"
            [ ! -e "$root/build/prometheus/prometheus" ] || [ ! -e "$root/build/prometheus/promtool" ] || echo build
        }
        note() { :; }
        logged() {
            printf 'asked, '
            while [ "$1" != download ]; do shift; done
            for package in "${@:2}"; do touch "$root/build/prometheus/${package}_1.deb"; done
        }
        dpkg-deb() {
            local programs=${2##*/}
            programs=${programs%_1.deb}
            [ -n "$split" ] || programs="prometheus promtool"
            mkdir -p "$3/usr/bin"
            for program in $programs; do touch "$3/usr/bin/$program"; done
        }
        fetch_prometheus && printf here || printf 'not here'
    )
    [ "$said" = "$4" ] && return
    printf '%s with prometheus %s and promtool %s, %s before: "%s", not "%s"\n' "$1" "${2:-unknown}" "${split:-within}" \
        "$3" "$said" "$4"
    failed=$((failed + 1))
}

fetches debian 2.42.0 /usr/bin here
fetches debian 2.42.0 no 'asked, here'
fetches debian 2.53.3 no 'asked, here' 2.53.3
fetches debian '' no 'not here'
fetches fedora 2.42.0 no 'not here'

[ $failed = 0 ] && echo "all as wanted"
exit $((failed > 0))
