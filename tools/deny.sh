#!/bin/sh
# Checks what we depend on: licences, sources, bans. These need no network. `tools/deny.sh advisories` asks the database of
# known vulnerabilities, which is fetched from GitHub.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:$PWD/target/tools/bin
if ! command -v cargo-deny >/dev/null; then
    echo 'skipped: cargo-deny is not installed (make deps)'
    exit 0
fi
[ $# -gt 0 ] || set -- --hide-inclusion-graph licenses bans sources
cargo deny --locked check "$@"
