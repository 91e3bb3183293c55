#!/usr/bin/env bash
# test_unit.sh UNIT - what systemd says of gemmd.service: that it understands every line, and that
# the exposure is 1.5 at most. Takes no systemd that runs.
set -euo pipefail

unit=$1
command -v systemd-analyze >/dev/null || {
    echo "skipped: there is no systemd-analyze"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# --offline is of systemd 250.
systemd-analyze security --offline=yes --threshold=15 "$unit" >"$work/report" 2>&1 || {
    ! grep -qi 'unrecognized option' "$work/report" || { echo "skipped: systemd is too old"; exit 77; }
    cat "$work/report"
    exit 1
}
tail -n 1 "$work/report"
grep -q 'Overall exposure level' "$work/report"
# A program that is there, as the unit names one that need not be installed here.
sed 's|^ExecStart=gemmd|ExecStart=/bin/true|; s|^ExecReload=kill|ExecReload=/bin/kill|' "$unit" >"$work/gemmd.service"
faults=$(systemd-analyze verify "$work/gemmd.service" 2>&1 | grep "^$work/gemmd.service:" || :)
[ -z "$faults" ] || {
    echo "$faults"
    exit 1
}
