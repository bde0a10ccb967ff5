#!/bin/sh
# Runs the shared test vectors in every crate that owns some, and in the Python package, and adds up. A case that nobody ran,
# and that is not listed as later work, failed.
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

# Cases that a crate owns as well are run twice.
if sh tools/python.sh environment; then
    PYTHONDONTWRITEBYTECODE=1 target/python/bin/python python/tests/test_vectors.py >target/vectors-python.log 2>&1 || true
    cat target/vectors-python.log
    sum=$(sed -n 's/^python: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) of no crate$/\1 \2 \3/p' target/vectors-python.log)
    # shellcheck disable=SC2086 # three numbers
    set -- ${sum:-0 0 0}
    [ -n "$sum" ] || broken=1
else
    echo 'skipped: vectors of the Python package: what it needs cannot be installed (make deps)'
    set -- 0 0 0
fi
alone=$3
missed=$((all - later - passed - failed - alone))
passed=$((passed + $1)) failed=$((failed + $2))
if [ "$missed" -gt 0 ]; then
    echo "not run by anyone: $missed"
fi
failed=$((failed + missed))
[ "$broken" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "vectors: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
