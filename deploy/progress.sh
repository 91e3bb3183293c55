# progress.sh - sourced by deploy/quickstart.sh, deploy/image.sh and tests/run.sh: numbered steps on
# the screen, details in log files, and no process left behind.
#
# Every long command runs in a session of its own (setsid), so that one signal to its group ends
# it together with all that it started, and so that nothing can ask a question on the terminal.

steps_total=0
step_number=0
running= # the group that `logged` waits for
report_after=10 # seconds that a command may take in silence
report_every=30 # seconds, where the output is no terminal

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
    local log=$1 status=0 reporter
    shift
    mkdir -p "${log%/*}"
    setsid "$@" >"$log" 2>&1 </dev/null &
    running=$!
    report "$log" &
    reporter=$!
    wait "$running" || status=$?
    running=
    end_report "$reporter"
    [ "$status" = 0 ] || show_failure "$status" "$log" "$@"
    return "$status"
}

# report LOG: in the background, says how long a command has taken, and the last line of its LOG:
# now and then, or on a terminal every second in one line. Ends with this script.
report() {
    local start=$SECONDS next=$report_after interval=$report_every before='' after='\n' width=200
    local never taken last
    trap - EXIT
    if [ -t 1 ]; then
        interval=1 before='\r\033[K' after=''
        width=$(stty size 2>/dev/null </dev/tty) || width='25 80' # lines and columns
        width=${width#* }
        width=$((width > 40 ? width - 16 : 64))
    fi
    exec {never}<> <(:) # nothing ever comes out of it: reading is waiting, without a process
    while kill -0 $$ 2>/dev/null; do
        read -rt 1 -u "$never" || :
        taken=$((SECONDS - start))
        ((taken >= next)) || continue
        next=$((taken + interval))
        last=$(tail -c 1000 "$1" 2>/dev/null | tr '\r' '\n' | grep -a . | tail -n 1 | tr -cd '[:print:]') || :
        [ -z "$last" ] || printf "$before      %d s: %.${width}s$after" "$taken" "$last"
    done
}

# end_report REPORTER: takes its line off the terminal.
end_report() {
    kill "$1" 2>/dev/null || :
    wait "$1" 2>/dev/null || :
    [ ! -t 1 ] || printf '\r\033[K'
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
