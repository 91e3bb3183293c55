#!/usr/bin/env bash
# test_progress.sh - what deploy/progress.sh says while a command runs for long, and that nothing
# of it is left behind.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

wrong() {
    printf '%s; it was:\n%s\n' "$1" "$(cat -v "$work/said")"
    failed=$((failed + 1))
}

cat >"$work/script" <<END
set -euo pipefail
. "$checkout/deploy/progress.sh"
report_after=1 report_every=1
logged "$work/log" "\$@" || exit
END

bash "$work/script" sh -c 'echo first; sleep 2.5; echo last; sleep 1.5' >"$work/said"
grep -qx '      [1-4] s: first' "$work/said" || wrong "the line of the log was not said"
grep -qx '      [1-4] s: last' "$work/said" || wrong "the next line was not said"
! LC_ALL=C grep -q '[^ -~]' "$work/said" || wrong "control codes where there is no terminal"

bash "$work/script" true >"$work/said"
[ ! -s "$work/said" ] || wrong "a short command is not silent"

! bash "$work/script" sh -c 'echo bad; exit 3' >"$work/said" || wrong "a failure is not passed on"
grep -q 'failed with status 3' "$work/said" || wrong "a failure was not said"

bash "$work/script" sh -c 'echo one; sleep 60' >"$work/said" &
script=$!
sleep 1.5
kill -TERM "$script"
wait "$script" || :
sleep 1.5
count=$(wc -l <"$work/said")
sleep 1.5
[ "$(wc -l <"$work/said")" = "$count" ] || wrong "it went on after the script's end"

[ $failed = 0 ] && echo "all as wanted"
exit $((failed > 0))
