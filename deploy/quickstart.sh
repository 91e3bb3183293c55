#!/usr/bin/env bash
# quickstart.sh - from a bare Debian or Ubuntu to a running gemmd: installs what is
# missing, builds, starts the daemon, asks it for a transpose, two products and why a kernel is slow,
# checks and shows the answers, and leaves the daemon in the foreground.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./deploy/quickstart.sh [--once] [--port N]

  --once     stop the daemon after the demonstration; the exit status says whether all went well
  --port N   listen on this port of 127.0.0.1 (default: 8080, or a free one where that is taken)

The first time it takes up to five minutes on two cores, nearly all of them to install and to compile.
May be repeated, which takes seconds; details of what it did are in build/log/.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
. deploy/progress.sh
. deploy/deps.sh
. deploy/build.sh

once=no
port=
while [ $# -gt 0 ]; do
    case $1 in
    --once) once=yes ;;
    --port)
        [[ ${2:-} =~ ^[0-9]{1,5}$ ]] && ((10#$2 <= 65535)) || die "--port wants a number up to 65535"
        port=$2
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

for variable in GEMMD_KEYS GEMMD_TLS_CERT GEMMD_TLS_KEY GEMMD_TLS_CLIENT_CA; do
    [ -z "${!variable:-}" ] || die "the demonstration takes neither keys nor TLS: unset $variable"
done

demo=build/demo
daemon= # gemmd's process and group

on_exit() { # in the place of progress.sh's
    [ -z "$running" ] || end_group "$running" 10
    [ -z "$daemon" ] || end_group "$daemon" 15
}

port_taken() {
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# start_daemon PORT: sets $daemon and $url. Should this script be killed outright, the kernel
# sends gemmd a SIGTERM.
start_daemon() {
    local out=$logs/gemmd.out tick watch=()
    ! has setpriv || watch=(setpriv --pdeathsig TERM)
    rm -f "$out" "$logs/gemmd.log" # another daemon may still be writing there
    setsid "${watch[@]}" build/release/server/gemmd --listen "127.0.0.1:$1" \
        >"$out" 2>"$logs/gemmd.log" </dev/null &
    daemon=$!
    for ((tick = 0; tick < 600; tick++)); do
        url=$(sed -n 's|^listening on \(http://[^ ]*\)$|\1|p' "$out" 2>/dev/null) || url=
        [ -z "$url" ] || return 0
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    show_log
    die "gemmd did not start"
}

show_log() {
    note "the end of build/log/gemmd.log:"
    tail -n 20 "$logs/gemmd.log" | sed 's/^/      | /'
}

# ask COMMAND: shows it and runs exactly that, with its output in $demo/reply.
ask() {
    printf '\n$ %s\n' "$1"
    timeout 60 bash -c "$1" >"$demo/reply" </dev/null && return
    show_log
    die "curl failed"
}

# show FILE MATRIX: prints a reply for people, and fails unless it has that matrix.
show() {
    awk -v want="$2" -f deploy/show_reply.awk "$demo/$1" || wrong_answer
}

wrong_answer() {
    die "that is not the right answer: please report it, with build/log/gemmd.log"
}

# The operands of a product of 512 x 512 matrices, a[i,k] = i%7 + k%3, b[k,j] = (k%5 - 1)(j%4 + 1).
write_operands() {
    awk 'BEGIN {
        n = 512
        printf "{\"a\":["
        for (i = 0; i < n; i++) {
            printf "%s[", i ? "," : ""
            for (k = 0; k < n; k++) printf "%s%d", k ? "," : "", i % 7 + k % 3
            printf "]"
        }
        printf "],\"b\":["
        for (k = 0; k < n; k++) {
            printf "%s[", k ? "," : ""
            for (j = 0; j < n; j++) printf "%s%d", j ? "," : "", (k % 5 - 1) * (j % 4 + 1)
            printf "]"
        }
        printf "]}"
    }' >$demo/operands.json
}

# Their product is (j%4 + 1) sum over k of (i%7 + k%3)(k%5 - 1): every element is compared.
check_product() {
    od -An -v -t f4 -w4 $demo/product.raw | awk '
        BEGIN {
            n = 512
            for (i = 0; i < 7; i++) for (k = 0; k < n; k++) sum[i] += (i + k % 3) * (k % 5 - 1)
        }
        {
            i = int((NR - 1) / n); j = (NR - 1) % n
            if ($1 != sum[i % 7] * (j % 4 + 1)) { wrong++ }
        }
        END {
            if (NR != n * n) { printf "      %d elements came, not %d\n", NR, n * n; exit 1 }
            if (wrong) { printf "      %d of %d elements are wrong\n", wrong, NR; exit 1 }
            printf "      result   %d elements, all as they must be\n", NR
        }' || wrong_answer
}

demonstrate() {
    mkdir -p $demo
    write_operands
    ask "curl -sS -d '[[1,2,3],[4,5,6]]' $url/v1/transpose"
    show reply '1 4;2 5;3 6'
    ask "curl -sS -d '{\"a\":[[1,2],[3,4]],\"b\":[[5,6],[7,8]]}' $url/v1/matmul"
    show reply '19 22;43 50'
    ask "curl -sS -H 'Accept: application/octet-stream' -D $demo/headers -o $demo/product.raw \\
    --data-binary @$demo/operands.json $url/v1/matmul"
    check_product
    sed -n 's/^[Gg]emmd-[Ss]tats: *//p' $demo/headers | tr -d '\r' >$demo/stats
    show stats ''
    printf '\nWhy the textbook kernel `tiled` is slow, from a run on a simulated GPU:\n'
    ask "curl -sS '$url/v1/explain/transpose?kernel=tiled'"
    show_report
}

# What is slow, why, what cures it, and at which line: all but the totals. Fails unless that is the
# bank conflict that this kernel is there to show.
show_report() {
    sed -n '/^[a-z_/]*\.cu:[0-9]/,/^global memory/{/^global memory/q;s/^./      &/;p}' $demo/reply >$demo/report
    cat $demo/report
    grep -q 'shared_load *tile .* 32-way bank conflict' $demo/report || wrong_answer
}

# next_steps URL: what a reader may type or click now.
next_steps() {
    printf '      %s\n' \
        "The console, in a browser:" \
        "  $1/" \
        "Which lane waits for which bank, drawn; open in a browser:" \
        "  $1/v1/explain/transpose?kernel=tiled&format=svg" \
        "The kernel with the cure:" \
        "  curl '$1/v1/explain/transpose?kernel=padded'" \
        "All kernels that run here, on the same operands:" \
        "  curl --data-binary @$demo/operands.json $1/v1/compare/matmul" \
        "A matrix of yours, from numpy.save:" \
        "  curl --data-binary @a.npy $1/v1/transpose -o transposed.npy" \
        "The same without curl, and more:" \
        "  build/release/clients/c/gemmctl --url $1 transpose a.npy -o transposed.npy" \
        "More is in README.md."
}

# Passes signals on until gemmd is gone, and returns its exit status.
foreground() {
    local status signalled
    trap 'signalled=yes; kill -TERM "$daemon" 2>/dev/null || :' HUP INT TERM
    while :; do
        signalled=no status=0
        wait "$daemon" || status=$?
        # A trapped signal ends `wait` early, with a status above 128.
        [ "$signalled" = yes ] && ((status > 128)) || break
    done
    daemon=
    return "$status"
}

stop_daemon() {
    local status=0
    end_group "$daemon" 20
    wait "$daemon" || status=$?
    daemon=
    return "$status"
}

steps_total=4
step "What gemmd is built from"
ensure_dependencies build
find_gpu here "gemmd computes on the CPU"

step "Building gemmd"
build release gemmd gemmctl libgemmd_shared || die "gemmd could not be built" # what is installed

step "Starting it"
if [ -z "$port" ]; then
    port=8080
    if port_taken $port; then
        note "port $port is taken: a free one will do"
        port=0
    fi
fi
export no_proxy=127.0.0.1
start_daemon "$port"
note "gemmd listens on $url; its log is build/log/gemmd.log"
if [ $has_gpu = yes ] && ! curl -sS "$url/v1/devices" | grep -q '"cuda'; then
    note "this build has no CUDA backend: the GPU is not used"
fi

step "Asking it"
demonstrate
if [ $once = yes ]; then
    stop_daemon || die "gemmd ended with status $?; see build/log/gemmd.log"
    note "All answers were right, and gemmd was stopped. With ./deploy/quickstart.sh it goes on:"
    next_steps http://localhost:8080
else
    note "All answers were right. gemmd goes on at $url; stop it with Ctrl-C."
    next_steps "$url"
    foreground
fi
