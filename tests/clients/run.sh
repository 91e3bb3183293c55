#!/usr/bin/env bash
# run.sh PYTHON TEST - runs a file of tests in the environment that venv.sh makes of that Python. Exits with 77,
# which ctest takes for skipped, where it cannot be made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
venv=$here/../../build/clients-venv
if ! said=$("$here/venv.sh" "$1" 2>&1); then
    tail -n 5 <<<"$said"
    echo "skipped: build/clients-venv cannot be made here"
    exit 77
fi
shift
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
