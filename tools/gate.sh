#!/usr/bin/env bash
# Runs parts of the gate, each a target of the Makefile, one after another, and sums up.
#
#   tools/gate.sh [--beside PART,...] PART...
#
# The parts after --beside begin at once, one after another, at the lowest priority, and each is waited for when its turn comes
# in the list.
# A part that fails does not keep the others from running. What a part prints decides what the summary says of it:
#   skipped: WHY   it, or a piece of it, did not run; where CI is set, that is a failure
#   note: WHAT     repeated in the summary
# Logs are in target/gate/.
set -euo pipefail
cd "$(dirname "$0")/.."

# What is built once has no use for incremental compilation.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0

logs=target/gate
rm -rf "$logs"
mkdir -p "$logs"
beside=
if [ "${1:-}" = --beside ]; then
    beside=,$2,
    shift 2
fi

# run PART [PREFIX...]: prints and logs what it prints; keeps its seconds, of the clock and of processors, and its status.
run() {
    local part=$1 status=0 TIMEFORMAT='%R %U %S'
    shift
    { time "$@" "${MAKE:-make}" --no-print-directory "$part" 2>&1; } 2>"$logs/$part.time" |
        tee "$logs/$part.log" || status=${PIPESTATUS[0]}
    echo "$status" >"$logs/$part.status"
}

if [ -n "$beside" ]; then
    # A process group of its own, so that it can be ended with all that it started.
    set -m
    (
        IFS=,
        for part in ${beside#,}; do
            run "$part" nice -n 19
        done
    ) >/dev/null 2>&1 </dev/null &
    aside=$!
    set +m
    trap 'kill -- "-$aside" 2>/dev/null || true' EXIT
fi

for part in "$@"; do
    echo "== $part"
    case $beside in
        *,"$part",*)
            # The status is written last.
            until [ -s "$logs/$part.status" ] || ! kill -0 "$aside" 2>/dev/null; do
                sleep 0.2
            done
            cat "$logs/$part.log"
            ;;
        *) run "$part" ;;
    esac
done

passed=0 skipped=0 failures=()
echo
echo "part              seconds  of processors"
for part in "$@"; do
    read -r real user system <"$logs/$part.time"
    whys=$(grep -a '^skipped: ' "$logs/$part.log" | sort -u || true)
    if [ "$(cat "$logs/$part.status")" -ne 0 ]; then
        result=FAILED failures+=("$part")
    elif [ -n "$whys" ] && [ -n "${CI:-}" ]; then
        result='FAILED (nothing may be skipped in CI)' failures+=("$part: ${whys//$'\n'/; }")
    elif [ -n "$whys" ]; then
        result=skipped skipped=$((skipped + 1))
    else
        result=passed passed=$((passed + 1))
    fi
    cpu=$(awk "BEGIN { print $user + $system }")
    printf '%-16s %8.0f %8.0f       %s\n' "$part" "$real" "$cpu" "$result"
    { [ -z "$whys" ] || echo "$whys"; grep -a '^note: ' "$logs/$part.log" || true; } | sed 's/^/    /'
done
printf '%-16s %8.0f\n' 'in all' "$SECONDS"
# Once more, because an output is often shown from its end only: what says that it failed, and how each ended.
for part in "$@"; do
    [ "$(cat "$logs/$part.status")" -ne 0 ] || continue
    echo "== failures of $part"
    grep -a -n -A 3 -E '(^test .*FAILED|panicked at|^FAILED|^error|^  FAIL)' "$logs/$part.log" | tail -n 60 || true
    echo "== the end of $part"
    tail -n 15 "$logs/$part.log"
done
for failure in "${failures[@]}"; do
    echo "failed: $failure"
done
echo "gate: $passed passed, ${#failures[@]} failed, $skipped skipped"
[ ${#failures[@]} -eq 0 ]
