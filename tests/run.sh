#!/usr/bin/env bash
# run.sh - sets all up and runs the tests that this machine can run: the optimised build, then what
# parses or holds memory under AddressSanitizer and UndefinedBehaviorSanitizer, then the server's under
# ThreadSanitizer. The last line on standard output sums up: N passed, N failed. See README.md here.
set -euo pipefail

usage() {
    cat <<'END'
usage: ./tests/run.sh [--quick] [--label LABEL] [--force]
       ./tests/run.sh --all [--force]

  --quick        the optimised build alone, without the sanitizers and without slow tests
  --all          also what takes hours: slow tests under sanitizers, the simulator under
                 them, kernels with faults in them, code for all GPUs, both commands on bare systems
  --label LABEL  only tests of this label: unit, http, kernels, sim, fuzz-corpus, lint, clients,
                 gpu
  --force        run also what is unchanged since it last passed

On two cores --quick takes up to 5 minutes to build and 3 to test; the default takes 11. What is
unchanged is not run again.
Details of what it did are in build/log/.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
. deploy/progress.sh
. deploy/deps.sh
. deploy/build.sh

presets="release asan tsan"
label=
force=no
quick=no all=no
while [ $# -gt 0 ]; do
    case $1 in
    --quick) presets=release quick=yes ;;
    --all) all=yes ;;
    --label)
        [[ ${2:-} =~ ^[a-z-]+$ ]] || die "--label wants the name of a label"
        label=$2
        shift
        ;;
    --force) force=yes ;;
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
[ $quick$all != yesyes ] || die "--quick and --all are opposites"
[ $all = no ] || [ -z "$label" ] || die "--all runs the tests of all labels"

passed=0 failed=0 skipped=0
fresh=no # a run of the default suite before which nothing was built
[ -e build/release ] || [ "$quick$all$label" != nono ] || fresh=yes

# The labels that are worth running in a build: lint looks at the sources alone; the simulator's
# kernels are the same machine code under AddressSanitizer; and what is not the server has no
# threads that could race.
labels_of() {
    case $1 in
    release) echo 'unit http kernels sim fuzz-corpus lint clients gpu' ;;
    asan) echo "unit http kernels fuzz-corpus clients$([ $all = no ] || echo ' sim')" ;;
    tsan) echo 'unit http kernels clients' ;;
    esac
}

title_of() {
    case $1 in
    release) echo 'The optimised build and its tests' ;;
    asan) echo 'The tests under AddressSanitizer and UndefinedBehaviorSanitizer' ;;
    tsan) echo "The server's tests under ThreadSanitizer" ;;
    esac
}

# The labels to run now, as a regular expression for ctest; empty where there is nothing to run.
chosen_labels() {
    local one chosen=
    for one in $(labels_of "$1"); do
        [ -z "$label" ] || [ "$one" = "$label" ] || continue
        [ "$one" != gpu ] || [ $has_gpu = yes ] || continue
        chosen="$chosen${chosen:+|}$one"
    done
    [ -z "$chosen" ] || echo "^($chosen)\$"
}

sources() {
    find . \( -name .git -o -path ./build -o -path './build-*' -o -name __pycache__ \
        -o -name .pytest_cache -o -type d -exec test -e '{}/pyvenv.cfg' \; \) -prune -o -type f -print0 | sort -z
}

# A line that changes with whatever could change an outcome: sources, tools, libraries, machine.
fingerprint() {
    {
        sources | xargs -0 sha256sum
        sources | xargs -0 stat --format '%a'
        gcc --version
        g++ --version
        cmake --version
        pkg-config --modversion libmicrohttpd jansson libcurl
        dpkg-query --show || :
        uname -r
        nvcc --version || :
        nvidia-smi -L || :
        command -v clang-format || :
        cat build/clients-venv/made || :
        prometheus_here || :
        chromium-headless-shell --version || chromium --version || :
        echo "$system_name, $(uname -m)"
    } 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

# How the sanitizers report, and what programs run under. Their shadow memory has fixed places,
# which the address randomisation of some kernels leaves no room for: setarch -R turns it off.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export OPENBLAS_NUM_THREADS=1 # its threads keep LeakSanitizer from stopping the process
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$root/tests/tsan.supp

# sanitizer_works PRESET: sets $launcher; false where programs built with it cannot start here.
sanitizer_works() {
    launcher=()
    [ "$1" != release ] || return 0
    ! setarch -R true 2>/dev/null || launcher=(setarch -R)
    "${launcher[@]}" "build/$1/server/gemmd" --version >"$logs/$1-start.log" 2>&1 && return
    grep -q 'unexpected memory mapping' "$logs/$1-start.log" || return 0 # let the tests show it
    return 1
}

# count_results JUNIT: adds up what ctest says.
count_results() {
    local tests failures disabled skips
    read -r tests failures disabled skips < <(tr '\n' ' ' <"$1" | sed -n \
        's/.*<testsuite [^>]*tests="\([0-9]*\)"[^>]*failures="\([0-9]*\)"[^>]*disabled="\([0-9]*\)"[^>]*skipped="\([0-9]*\)".*/\1 \2 \3 \4/p') || :
    [ -n "${skips:-}" ] || return 1
    here_failed=$failures here_skipped=$((disabled + skips))
    here_passed=$((tests - failures - here_skipped))
}

# run_preset PRESET: builds and tests it, unless nothing changed since all was well.
run_preset() {
    local preset=$1 green=build/$1/green-${label:-all} chosen print start=$SECONDS
    [ $quick = no ] || green=$green-quick
    [ $all = no ] || green=$green-whole
    local here_passed=0 here_failed=0 here_skipped=0 launcher
    chosen=$(chosen_labels "$preset")
    if [ -z "$chosen" ]; then
        note "nothing to run here"
        return
    fi
    print="$(fingerprint) $chosen"
    if [ $force = no ] && [ -f "$green" ] && [ "$(head -n 1 "$green")" = "$print" ]; then
        read -r here_passed here_skipped < <(tail -n 1 "$green")
        note "unchanged since the last green run: $here_passed passed"
    elif ! build "$preset" $([ $all = no ] || [ "$preset" = release ] || echo all whole); then
        here_failed=1
    elif ! sanitizer_works "$preset"; then
        note "ThreadSanitizer cannot run under this kernel's address randomisation: skipped"
        here_skipped=1
    else
        test_preset
    fi
    passed=$((passed + here_passed))
    failed=$((failed + here_failed))
    skipped=$((skipped + here_skipped))
}

# The part of run_preset that runs ctest.
test_preset() {
    local results=$root/build/$preset/results.xml status=0 without=(--label-exclude '^long$')
    [ $quick = no ] && [ "$preset" = release ] || without=(--label-exclude '^(slow|long)$')
    [ $all = no ] || { without=() && export GM_ALL=1; }
    rm -f "$results"
    setsid "${launcher[@]}" ctest --test-dir "build/$preset" --label-regex "$chosen" \
        "${without[@]}" --parallel "$((4 * $(nproc)))" --timeout 600 --output-on-failure --no-tests=ignore \
        --output-junit "$results" </dev/null 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    if [ ! -f "$results" ] || ! count_results "$results"; then
        note "ctest ended with status $status and left no results"
        here_failed=1
    elif [ "$status" != 0 ] && [ "$here_failed" = 0 ]; then
        note "ctest ended with status $status though no test failed"
        here_failed=1
    elif [ -z "$label" ] && [ "$here_passed" = 0 ]; then
        note "no test passed: that cannot be right"
        here_failed=1
    fi
    note "$here_passed passed, $here_failed failed, $here_skipped skipped in $((SECONDS - start)) s"
    if [ "$here_failed" = 0 ] && [ "$(fingerprint) $chosen" = "$print" ]; then
        printf '%s\n%s %s\n' "$print" "$here_passed" "$here_skipped" >"$green"
    fi
}

# What --all runs besides: a title | a command, which exits with 77 where it can do nothing here.
extras() {
    cat <<'END'
Every allocation and system call of requests fails once|tests/fault/torture.py --all
The same, until the daemon is ready|tests/fault/torture.py --all --start-up
Every fault that can be put into a kernel|tests/sim/mutate.py --build build/release --all
Both commands of README.md on bare systems|tests/deploy/bare.sh
The unit under a systemd that runs|tests/deploy/systemd.sh
The pod in a Kubernetes that runs|tests/deploy/cluster.sh
END
}

# run_extra COMMAND...: the command says itself what it does.
run_extra() {
    local status=0
    setsid "$@" </dev/null 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=
    case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
}

wanted=
has_gpu=yes # asked for below; until then no label is left out
for preset in $presets; do
    [ -z "$(chosen_labels "$preset")" ] || wanted="$wanted $preset"
done
[ -n "$wanted" ] || die "there is no label $label"
steps_total=$((1 + $(wc -w <<<"$wanted")))
[ $all = no ] || steps_total=$((steps_total + $(extras | wc -l)))

step "What gemmd and its tests are built from"
# What waits for the network begins early where it can. Below it is waited for, and done where it could not
# be: Python's environment by its lock, Prometheus by its process.
mkdir -p "$logs"
case $label in
'' | clients | lint)
    if /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null; then
        tests/clients/venv.sh /usr/bin/python3 >"$logs/clients-venv-early.log" 2>&1 </dev/null &
    fi
    ;;
esac
prometheus=
if [[ "$(chosen_labels release)" =~ clients ]]; then
    read_system
    fetch_prometheus >"$logs/prometheus-early.log" 2>&1 </dev/null &
    prometheus=$!
fi
ensure_dependencies tests
if [ -n "$prometheus" ]; then
    ! kill -0 "$prometheus" 2>/dev/null || note "fetching prometheus"
    wait "$prometheus" || :
fi
case $label in
'' | clients | lint)
    logged "$logs/clients-venv.log" tests/clients/venv.sh /usr/bin/python3 ||
        note "no Python environment for the clients: the tests labelled clients are skipped"
    ;;
esac
[[ ! "$(chosen_labels release)" =~ clients ]] || fetch_prometheus ||
    note "no Prometheus: the test of it is skipped"
[[ ! "$(chosen_labels release)" =~ clients ]] || offer_chromium || :
has_gpu=no
find_gpu "$([ $all = yes ] && echo all || echo one)" "the tests labelled gpu are skipped"
has clang-format || note "no clang-format: the check of the formatting is skipped"

for preset in $wanted; do
    step "$(title_of "$preset")"
    run_preset "$preset"
done

if [ $all = yes ]; then
    while IFS='|' read -r title command; do
        step "$title"
        run_extra $command
    done < <(extras)
fi

summary="$passed passed, $failed failed"
[ $skipped = 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
# For tests/bench/guard.
[ $fresh$failed != yes0 ] || echo "$SECONDS" >"$logs/fresh-run-seconds"
[ $failed = 0 ] && [ $passed -gt 0 ]
