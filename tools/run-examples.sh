#!/bin/sh
# Runs the examples of the documentation and looks at what they print.
set -eu
cd "$(dirname "$0")/.."

# The build of the tests, which have built them.
"${CARGO:-cargo}" build --quiet --workspace --all-features --examples --bins
examples=target/debug/examples

$examples/custom_controller | grep 'passes all conformance checks of controllers' >/dev/null

mkdir -p target
servers=
trap '[ -z "$servers" ] || kill $servers 2>/dev/null || true' EXIT

# start NAME: starts a server that prints where it listens, and sets `address`.
start() {
    rm -f "target/$1.out"
    "$examples/$1" 127.0.0.1:0 >"target/$1.out" &
    servers="$servers $!"
    tries=0
    until grep -q listening "target/$1.out" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -le 100 ] || { echo "$1 does not listen after 20 s" >&2; exit 1; }
        sleep 0.2
    done
    address=$(sed -n 's/^listening on //p' "target/$1.out")
}

start echo_server
$examples/echo_client "$address" 'hello over a bad link' | grep '^hello over a bad link$' >/dev/null

start axum
for http in 3 2; do
    target/debug/marline get "$address/hello/you" --insecure --http $http | grep '^hello you$' >/dev/null
done
$examples/client "$address/hello/you" --insecure | grep '^hello you$' >/dev/null

$examples/tonic | tr '\n' , | grep '^hello you,who is it?,you said one,you said two,$' >/dev/null

echo 'examples: 6 passed, 0 failed'
