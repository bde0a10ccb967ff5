#!/bin/sh
# Runs the examples of the documentation and looks at what they print.
set -eu
cd "$(dirname "$0")/.."

# The build of the tests, which have built them.
"${CARGO:-cargo}" build --quiet --workspace --all-features --examples
examples=target/debug/examples

$examples/custom_controller | grep 'passes all conformance checks of controllers' >/dev/null

mkdir -p target
$examples/echo_server 127.0.0.1:0 >target/echo.out &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
tries=0
until grep -q listening target/echo.out 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -le 100 ] || { echo 'echo_server does not listen after 20 s' >&2; exit 1; }
    sleep 0.2
done
address=$(sed -n 's/^listening on //p' target/echo.out)
$examples/echo_client "$address" 'hello over a bad link' | grep '^hello over a bad link$' >/dev/null

echo 'examples: 3 passed, 0 failed'
