#!/bin/sh
# Checks what we depend on: licences, sources and bans, which need no network, and the known vulnerabilities of all that the
# three lock files name. The database of these is fetched from GitHub, or read from a copy of it: ADVISORY_DB=DIR.
# `tools/deny.sh advisories` asks cargo-deny about them.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:$PWD/target/tools/bin

audit() {
    if ! command -v cargo-audit >/dev/null; then
        echo 'skipped: cargo-audit is not installed (make deps)'
        return
    fi
    copy=${ADVISORY_DB:-}
    if [ -z "$copy" ]; then
        # One that cannot be fetched is no fault of a change: the check is noted as missing, and older copies are used.
        copy=${CARGO_HOME:-$HOME/.cargo}/advisory-db
        if fetched=$(cargo audit --file Cargo.lock 2>&1); then
            :
        elif [ "${fetched#*"couldn't fetch"}" = "$fetched" ]; then
            echo "$fetched"
            return 1
        elif [ -d "$copy" ]; then
            echo "note: vulnerabilities were looked up in the copy of $(date -r "$copy" +%F): no newer one can be fetched"
        else
            echo 'note: known vulnerabilities were not looked up: their database cannot be fetched'
            return
        fi
    fi
    for lock in Cargo.lock fuzz/Cargo.lock interop/Cargo.lock playground/Cargo.lock; do
        cargo audit --no-fetch --stale --db "$copy" --deny yanked --file "$lock"
    done
}

if ! command -v cargo-deny >/dev/null; then
    echo 'skipped: cargo-deny is not installed (make deps)'
    exit 0
fi
if [ $# -gt 0 ]; then
    exec cargo deny --locked check "$@"
fi
cargo deny --locked check --hide-inclusion-graph licenses bans sources
audit
