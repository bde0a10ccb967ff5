#!/bin/sh
# Compares a plain download with a bundle of three connections, over real sockets and an emulated LTE link.
#
#   tools/bundle-lte.sh [DIR]     reports of all runs go to DIR (default: target/bundle-lte)
#
# Nothing is built: $MARLINE, or target/release/marline, has to be there. Further settings by environment:
#   LINK      what `marline lab link --link` takes (lte-a)
#   RUNS      runs of each variant (20); run K of every variant has a link with seed K
#   BYTES     size of the object (6000000)
#   VARIANTS  what to compare, of 1c, 3c and bundle ("1c bundle"); 3c is three connections on their own
#   SECONDS_A_RUN, SECONDS_IN_ALL   limits (60, 900): a run is given up, no further run begins
#
# Nothing is warmed up: each run is a fresh client and a fresh server, handshakes included. `from request` leaves
# out the handshake of the first connection; those of the others run while it already carries data.
set -eu
cd "$(dirname "$0")/.."

marline=${MARLINE:-target/release/marline}
link=${LINK:-lte-a}
runs=${RUNS:-20}
bytes=${BYTES:-6000000}
variants=${VARIANTS:-1c bundle}
a_run=${SECONDS_A_RUN:-60}
in_all=${SECONDS_IN_ALL:-900}
out=${1:-target/bundle-lte}

fail() {
    echo "bundle-lte: $1" >&2
    exit "${2:-1}"
}

for variant in $variants; do
    case $variant in
    1c | 3c | bundle) ;;
    *) fail "unknown variant $variant; known: 1c, 3c, bundle" 2 ;;
    esac
done
[ -x "$marline" ] || fail "$marline is not there; build it (cargo build --release) or name it in MARLINE" 2
marline=$(realpath "$marline")
mkdir -p "$out"
for variant in 1c 3c bundle; do
    rm -f "$out/$variant"-[0-9]*.json "$out/$variant"-[0-9]*.log
done

work=$(mktemp -d)
child=
clean() {
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null && wait "$child" || true
    fi
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$work/site"
head -c "$bytes" /dev/urandom >"$work/site/object"

server="'$marline' serve --profile bundle --listen 10.77.0.1:4433 '$work/site'"
url=https://10.77.0.1:4433/object

# get VARIANT RUN
get() {
    name=$out/$1-$(printf %03d "$2")
    case $1 in
    1c) set -- "$2" ;;
    3c) set -- "$2" --connections 3 --split 262144 ;;
    bundle) set -- "$2" --connections 3 --bundle ;;
    esac
    seed=$1
    shift
    rm -f "$work/got"
    # In the background, so that a signal to this script does not wait for the run's end.
    timeout -k 5 "$a_run" "$marline" lab link --link "$link" --seed "$seed" --server "$server" \
        -- "$marline" get --insecure "$url" -o "$work/got" --json "$@" >"$name.json" 2>"$name.log" &
    child=$!
    status=0
    wait "$child" || status=$?
    child=
    case $status in
    0) cmp -s "$work/site/object" "$work/got" && return || reason="what arrived is something else" ;;
    124 | 137) reason="not done after $a_run s" ;;
    *) reason=$(tail -n 1 "$name.log") ;;
    esac
    rm -f "$name.json"
    failed=$((failed + 1))
    echo "bundle-lte: a run failed: $reason ($name.log)" >&2
    # Where links cannot be emulated at all, more runs tell nothing more.
    [ "$failed" -lt 3 ] || ls "$out"/*-[0-9]*.json >/dev/null 2>&1 || exit 1
}

failed=0
run=1
begun=$(date +%s)
while [ "$run" -le "$runs" ]; do
    if [ $(($(date +%s) - begun)) -ge "$in_all" ]; then
        echo "bundle-lte: $in_all s are over after $((run - 1)) of $runs runs" >&2
        break
    fi
    # Alternating, so that what else the machine does meets all variants alike.
    for variant in $variants; do
        get "$variant" "$run"
    done
    run=$((run + 1))
done

# shellcheck disable=SC2086 # a list of names
python3 - "$out" "$link" "$bytes" $variants <<'SUMMARY'
import json
import pathlib
import statistics
import sys

directory, link, size, *variants = sys.argv[1:]
directory = pathlib.Path(directory)
figures = {"total": {}, "from request": {}}
notes = []
for variant in variants:
    reports = [json.loads(path.read_text()) for path in sorted(directory.glob(f"{variant}-[0-9]*.json"))]
    for values in figures.values():
        values[variant] = []
    for report in reports:
        handshake = min(report["connections"], key=lambda connection: connection["id"])["handshake_s"]
        figures["total"][variant].append(report["page_load_s"])
        figures["from request"][variant].append(report["page_load_s"] - handshake)
    alone = sum(report.get("bundle") is not True for report in reports)
    if variant == "bundle" and alone:
        notes.append(f"{alone} runs of bundle were NOT coordinated: they are three connections on their own")
    late = [path for path in directory.glob(f"{variant}-[0-9]*.log") if "not valid" in path.read_text()]
    if late:
        notes.append(f"{len(late)} runs of {variant} had packets that were late, because the machine was busy")

print(f"{size} bytes over {link}; seconds from a fresh client, not warmed up")
print(f"{'':14}{'variant':10}{'runs':>5}{'quartile':>10}{'median':>10}{'quartile':>10}{'against ' + variants[0]:>14}")
summary = {"link": link, "bytes": int(size), "prewarmed": False, "figures": {}}
for name, by_variant in figures.items():
    base = by_variant[variants[0]]
    for variant, values in by_variant.items():
        if not values:
            print(f"{name:14}{variant:10}{0:5}")
            continue
        low, median, high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else values * 3
        gain = 100 * (1 - median / statistics.median(base)) if base and variant != variants[0] else None
        told = "" if gain is None else f"{gain:+.1f} %"
        print(f"{name:14}{variant:10}{len(values):5}{low:10.3f}{median:10.3f}{high:10.3f}{told:>14}")
        summary["figures"].setdefault(name.replace(" ", "_"), {})[variant] = {
            "runs": len(values), "quartiles_s": [low, median, high], "improvement_percent": gain,
        }
for note in notes:
    print(note)
(directory / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
SUMMARY
[ "$failed" -eq 0 ] || fail "$failed runs failed; they are not in the table"
