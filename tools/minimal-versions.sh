#!/bin/sh
# Checks that the workspace builds with the lowest version of each dependency that its manifests allow.
#
# The lock file for that is in a directory of its own, beside links to the crates: the repository's is not touched.
set -eu
cd "$(dirname "$0")/.."

there=target/minimal-versions
mkdir -p "$there"
ln -sfn ../../crates "$there/crates"

# What is resolved stays so until a manifest changes: new releases of what dependencies need are no business of this check.
if ! cat Cargo.toml crates/*/Cargo.toml | cmp -s - "$there/manifests"; then
    cp Cargo.toml "$there/Cargo.toml"
    rm -f "$there/Cargo.lock" "$there/manifests"
    # The option is not stable yet; nothing is compiled with this variable.
    RUSTC_BOOTSTRAP=1 "${CARGO:-cargo}" update --quiet --manifest-path "$there/Cargo.toml" -Z direct-minimal-versions
    cat Cargo.toml crates/*/Cargo.toml >"$there/manifests"
fi
exec "${CARGO:-cargo}" check --workspace --all-features --all-targets --locked \
    --manifest-path "$there/Cargo.toml" --target-dir "$there/target"
