#!/bin/sh
# Runs the shared test vectors in every crate that owns some, and adds up. A case that no crate ran, and
# that is not listed as later work, failed.
set -eu
cd "$(dirname "$0")/.."

# Tests run in their crate's directory.
if [ -n "${MARLINE_VECTORS:-}" ]; then
    MARLINE_VECTORS=$(cd "$MARLINE_VECTORS" && pwd)
    export MARLINE_VECTORS
fi

mkdir -p target
log=target/vectors.log
# All crates at once and with all features: the same build as that of the other tests.
"${CARGO:-cargo}" test --quiet --workspace --all-features --no-fail-fast --test vectors >"$log" 2>&1 || true
cat "$log"

passed=0 failed=0 later=0 all=0 broken=0
for test in crates/*/tests/vectors.rs; do
    crate=${test#crates/}
    crate=${crate%%/*}
    sum=$(sed -n "s/^$crate: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) later, \([0-9]*\) in all\$/\1 \2 \3 \4/p" "$log")
    if [ -z "$sum" ]; then
        broken=1
        continue
    fi
    # shellcheck disable=SC2086 # four numbers
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) later=$3 all=$4
done
missed=$((all - later - passed - failed))
if [ "$missed" -gt 0 ]; then
    echo "not run by any crate: $missed"
fi
failed=$((failed + missed))
[ "$broken" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "vectors: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
