#!/bin/sh
# Builds the four components, and makes one of them: orders.wasm. What Python and JavaScript need goes to reader/.venv and page/node_modules, the first time.
set -eu
cd "$(dirname "$0")"
AWSM=${AWSM:-awsm}

(cd front && cargo build --quiet --release --locked --target wasm32-wasip2)
cp "${CARGO_TARGET_DIR:-front/target}/wasm32-wasip2/release/front.wasm" front.wasm

(cd ledger && GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o ../ledger.core.wasm .)
"$AWSM" componentize ledger.core.wasm --wit wit --world go -o ledger.wasm

if ! test -x reader/.venv/bin/componentize-py; then
    python3 -m venv reader/.venv
    reader/.venv/bin/python -m pip install --quiet --disable-pip-version-check componentize-py==0.25.1
fi
(cd reader && VIRTUAL_ENV=$PWD/.venv .venv/bin/componentize-py --quiet -d ../wit -w python componentize app -o ../reader.wasm)

test -x page/node_modules/.bin/componentize-js || (cd page && npm ci --silent --no-audit --no-fund)
# What is disabled is no import of the component. Without `stdio` it could not write to streams either.
(cd page && npx --no-install componentize-js page.js --wit ../wit -n javascript -d http fetch-event random clocks -o ../page.wasm)

"$AWSM" compose front.wasm --plug ledger.wasm --plug reader.wasm --plug page.wasm -o orders.wasm
