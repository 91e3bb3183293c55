#!/usr/bin/env bash
# venv.sh PYTHON - makes build/clients-venv of that Python, with what the tests of the clients need
# (requirements.txt), and beside it build/clients-wheels, with what the Python package depends on, so that the
# tests can install its wheel into a fresh environment without a network. Does nothing where that is done.
set -euo pipefail

python=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
project=$root/clients/python/pyproject.toml
venv=$root/build/clients-venv
wheels=$root/build/clients-wheels

# One at a time: tests of several builds may start together.
mkdir -p "$root/build"
exec 9>"$root/build/clients-venv.lock"
flock 9

now=$({ cat "$root"/tests/clients/{requirements.txt,venv.sh} "$project" && "$python" --version; } | sha256sum)
[ "$(cat "$venv/made" 2>/dev/null)" != "$now" ] || exit 0

rm -rf "$venv" "$wheels"
"$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet --timeout 20 --retries 1 "$@"; }

dependencies=$(sed -n 's/^dependencies = \[\(.*\)\]$/\1/p' "$project" | tr -d '" ' | sed 's/,\([a-z]\)/\n\1/g')
[ -n "$dependencies" ]
pip download --dest "$wheels" --only-binary :all: $dependencies
pip install --find-links "$wheels" $dependencies --requirement "$root/tests/clients/requirements.txt"
echo "$now" >"$venv/made"
