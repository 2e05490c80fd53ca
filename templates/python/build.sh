#!/bin/sh
# Makes the component {{name}}.wasm of app.py. What it needs goes to the folder .venv, the first time and when requirements.txt or this file changes.
set -eu
cd "$(dirname "$0")"
WASI=0.2.6

if ! test .venv/ready -nt requirements.txt || ! test .venv/ready -nt build.sh; then
    rm -rf .venv
    python3 -m venv .venv
    pip() { .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"; }
    pip --requirement requirements.txt
    # The definition of wasi:http is in the package of Spin's SDK; the rest of that package is not used.
    pip --no-deps --target .venv/spin spin-sdk==5.0.0
    mv .venv/spin/spin_sdk/wit/deps .venv/wit
    rm -r .venv/spin
    touch .venv/ready
fi

set --
for package in io clocks random filesystem sockets cli http; do
    set -- "$@" -d ".venv/wit/$package@$WASI"
done
VIRTUAL_ENV=$PWD/.venv .venv/bin/componentize-py --quiet "$@" -w "wasi:http/proxy@$WASI" componentize app -o {{name}}.wasm
