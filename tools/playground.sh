#!/bin/sh
# Builds the playground, a page without a server, in target/playground, checks that its results are those of the native
# build, and tries it in browsers.
set -eu
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
target=wasm32-unknown-unknown
# The C in ring is compiled for the same target, which GCC cannot.
if [ -z "${CC_wasm32_unknown_unknown:-}" ] && ! command -v clang >/dev/null; then
    echo "the playground needs clang: install it, or name one in CC_wasm32_unknown_unknown" >&2
    exit 1
fi
if command -v rustup >/dev/null && ! rustup target list --installed | grep -q "^$target\$"; then
    rustup --quiet target add "$target" || {
        echo "the playground needs Rust's target $target: rustup target add $target" >&2
        exit 1
    }
fi

out=target/playground
(cd playground && "$CARGO" build --quiet --release --lib --target "$target" && "$CARGO" build --quiet)
rm -rf "$out"
mkdir -p "$out"
(cd playground && "$CARGO" test --quiet --lib)
cp playground/page/* "$out"
cp "target/$target/release/marline_playground.wasm" "$out/playground.wasm"

if command -v node >/dev/null; then
    node playground/compare.mjs "$out" target/debug/marline-playground
else
    echo "skipped: there is no node to compare the digests with"
fi

wc -c "$out"/*
[ "$(cat "$out"/* | wc -c)" -lt 5000000 ] || { echo "the playground is larger than 5 MB" >&2; exit 1; }
"${PYTHON:-python3}" tools/playground.py
echo "$out is ready: any web server can serve it, such as \`marline serve $out\`"
