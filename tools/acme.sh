#!/bin/sh
# Builds Pebble, the certificate authority for tests of Let's Encrypt, into target/pebble, and runs the tests that need it.
set -eu
cd "$(dirname "$0")/.."

version=v2.10.3
if ! command -v go >/dev/null; then
    echo 'skipped: the certificate authority of the tests needs go'
    exit 0
fi
if [ "$(cat target/pebble/version 2>/dev/null)" != "$version" ]; then
    mkdir -p target/pebble
    for program in pebble pebble-challtestsrv; do
        GOFLAGS=-mod=mod GOBIN="$PWD/target/pebble" go install "github.com/letsencrypt/pebble/v2/cmd/$program@$version"
    done
    echo "$version" >target/pebble/version
fi
tools/unit.sh --test acme
