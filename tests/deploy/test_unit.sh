#!/usr/bin/env bash
# test_unit.sh UNIT - what systemd says of gemmd.service: that it understands every line, that the
# exposure is 1.5 at most, and that the unit allows each system call that gemmd allows itself, and
# the one by which it gives up the others. Takes no systemd that runs.
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

# expand NAME...: system calls, those of sets of systemd's among them.
expand() {
    awk '/^@/ { set = $1 } /^    [@a-z]/ { calls[set] = calls[set] " " $1 }
        function add(name, part, i, n) {
            n = split(calls[name], part)
            for (i = 1; i <= n; i++) add(part[i])
            if (name !~ /^@/) print name
        }
        END { for (k = split(wanted, names); k > 0; k--) add(names[k]) }' wanted="$*" "$work/sets"
}
systemd-analyze syscall-filter >"$work/sets"

sandbox=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)/server/sandbox.c
grep -ow 'SYS_[a-z0-9_]*' "$sandbox" | sed 's/^SYS_//' | grep -vx capset | sort -u >"$work/taken"
expand $(sed -n 's/^SystemCallFilter=\([^~]\)/\1/p' "$unit") | sort -u >"$work/listed"
expand $(sed -n 's/^SystemCallFilter=~//p' "$unit") | sort -u >"$work/forbidden"
comm -23 "$work/listed" "$work/forbidden" >"$work/allowed"
missing=$(comm -23 "$work/taken" "$work/allowed")
[ -z "$missing" ] || {
    echo "the unit forbids system calls that gemmd takes:" $missing
    exit 1
}
