#!/bin/sh
# Checks the core with the other cryptographic library, which the features of a whole build never choose: lints, and
# connections over networks that lose and reorder packets.
set -eu
cd "$(dirname "$0")/.."

core="-p marline-proto --no-default-features --features ring,testing"
# shellcheck disable=SC2086 # a list of arguments
"${CARGO:-cargo}" clippy $core --all-targets -- -D warnings
# shellcheck disable=SC2086
exec "${CARGO:-cargo}" test $core --test provider
