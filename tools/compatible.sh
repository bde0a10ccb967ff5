#!/bin/sh
# Checks by cargo-semver-checks whether the version in Cargo.toml allows what has changed in the libraries since the last release.
#
#   tools/compatible.sh [TAG]    by default the last tag before this commit whose name begins with `v`
#
# Without a release, and without a change since it, there is nothing to compare, which a note says.
set -eu
cd "$(dirname "$0")/.."

wanted=0.51.0
last=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [ -z "$last" ]; then
    echo 'note: there is no release to be compatible with'
    exit 0
fi
if git diff --quiet "$last" -- Cargo.toml crates; then
    echo "note: the crates are those of $last"
    exit 0
fi

tool=target/tools/bin/cargo-semver-checks
if [ "$($tool --version 2>/dev/null)" != "cargo-semver-checks $wanted" ]; then
    echo "installing cargo-semver-checks $wanted" >&2
    "${CARGO:-cargo}" install --quiet --locked --version $wanted --root target/tools cargo-semver-checks
fi
# Those that both versions have. The library of the command is for its tests.
packages=
for crate in $(git ls-tree --name-only "$last" crates/); do
    name=${crate#crates/}
    [ ! -d "$crate" ] || [ "$name" = marline-cli ] || packages="$packages --package $name"
done
# shellcheck disable=SC2086 # a list of arguments
$tool semver-checks --baseline-rev "$last" $packages
