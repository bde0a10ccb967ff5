#!/bin/sh
# Builds the libraries and the command, with every feature, by the oldest Rust that is promised to do.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if ! rustup run "$version" cargo --version >/dev/null 2>&1; then
    echo "skipped: Rust $version is not installed (make deps)"
    exit 0
fi
exec rustup run "$version" cargo check --workspace --all-features --locked --target-dir target/msrv
