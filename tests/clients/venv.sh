#!/usr/bin/env bash
# venv.sh - makes build/clients-venv: a Python with what the tests of the clients need
# (requirements.txt), and beside it, in build/clients-wheels, what the Python package depends on, so that the
# tests can install its wheel into a fresh environment without a network. Does nothing where it is made already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
venv=$root/build/clients-venv
wheels=$root/build/clients-wheels
python=${1:-/usr/bin/python3}

needed() {
    sha256sum "$root"/tests/clients/{requirements.txt,venv.sh} "$root/clients/python/pyproject.toml"
    "$python" --version
}

now=$(needed | sha256sum)
[ "$(cat "$venv/made" 2>/dev/null)" != "$now" ] || exit 0

rm -rf "$venv" "$wheels"
mkdir -p "$root/build"
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
mapfile -t names < <("$venv/bin/python" - "$root/clients/python/pyproject.toml" <<'END'
import sys, re
text = open(sys.argv[1], encoding="utf-8").read()
print("\n".join(re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*?)\]", text, re.M | re.S).group(1))))
END
)
"${pip[@]}" download --dest "$wheels" --only-binary :all: "${names[@]}"
"${pip[@]}" install --find-links "$wheels" "${names[@]}" --requirement "$root/tests/clients/requirements.txt"
echo "$now" >"$venv/made"
