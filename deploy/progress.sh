# progress.sh - sourced by deploy/quickstart.sh, deploy/image.sh and tests/run.sh: numbered steps on
# the screen, details in log files, and no process left behind.
#
# Every long command runs in a session of its own (setsid), so that one signal to its group ends
# it together with all that it started, and so that nothing can ask a question on the terminal.

steps_total=0
step_number=0
running= # the group that `logged` waits for

step() {
    step_number=$((step_number + 1))
    printf '[%d/%d] %s\n' "$step_number" "$steps_total" "$*"
}

note() {
    printf '      %s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# logged LOG COMMAND...: runs it with its output in LOG; shows the end of LOG if it fails.
logged() {
    local log=$1 status=0
    shift
    mkdir -p "${log%/*}"
    setsid "$@" >"$log" 2>&1 </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    [ "$status" = 0 ] || show_failure "$status" "$log" "$@"
    return "$status"
}

# show_failure STATUS LOG COMMAND...
show_failure() {
    local status=$1 log=$2
    shift 2
    note "failed with status $status: $*"
    note "the end of $log:"
    tail -n 30 "$log" | sed 's/^/      | /'
}

# end_group GROUP SECONDS: ends it politely, after so long by force. Returns when all of it is gone.
end_group() {
    local group=$1 tick
    kill -TERM -- "-$group" 2>/dev/null || return 0
    for ((tick = 0; tick < $2 * 10; tick++)); do
        kill -0 -- "-$group" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null
    return 0
}

on_exit() {
    [ -z "$running" ] || end_group "$running" 10
}

trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
