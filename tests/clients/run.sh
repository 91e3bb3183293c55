#!/usr/bin/env bash
# run.sh FILE - runs a file of tests with the Python that venv.sh makes; status 77 where there is none.
python=$(dirname "${BASH_SOURCE[0]}")/../../build/clients-venv/bin/python
if [ ! -x "$python" ]; then
    echo "skipped: there is no build/clients-venv; tests/clients/venv.sh makes it"
    exit 77
fi
exec "$python" -m pytest -q -p no:cacheprovider "$@"
