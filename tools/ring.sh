#!/bin/sh
# Checks what the features of a whole build never choose: the core with the other cryptographic library, by lints and
# connections over networks that lose and reorder packets, and the command with the features of docs/own-policies.md.
set -eu
cd "$(dirname "$0")/.."

core="-p marline-proto --no-default-features --features ring,testing"
# shellcheck disable=SC2086 # a list of arguments
"${CARGO:-cargo}" clippy $core --all-targets -- -D warnings
# shellcheck disable=SC2086
"${CARGO:-cargo}" test $core --test provider
exec "${CARGO:-cargo}" clippy -p marline-cli --no-default-features --features aws-lc-rs --lib -- -D warnings
