#!/usr/bin/env python3
"""Runs every experiment, and says before what it will take.

    tools/experiments.py COMMAND                     all, those in virtual time first
    tools/experiments.py COMMAND --list              what they would take, and nothing else
    tools/experiments.py COMMAND --only wifi/        those whose names begin so; repeatable

COMMAND is the program, as target/release/marline. Results are in lab-results/ (LAB_RESULTS: elsewhere). Runs that are
there already are not repeated, so that an interrupted start continues. The kernel in virtual time needs `make kernel`, the
emulator the rights that `marline lab run --help` names. The end says which experiments failed, which
could not run here, and why.

Times are of earlier results: of this machine, else of the kept ones in docs/results; experiments that are not timed take
the median of a run of the others on their backend.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

RESULTS = pathlib.Path(os.environ.get("LAB_RESULTS", "lab-results"))
KEPT = pathlib.Path(__file__).parent.parent / "docs/results"
# Commands that make other results that the documents show.
OTHERS = ["make flows", "make determinants", "make tunnel"]
# The fastest experiments come first; experiments in real time need the machine for themselves, and come last.
ORDER = ["sim", "sim+kernel", "kernel", "sim+emu", "emu+kernel", "emu"]


def runs(experiment):
    return len(experiment["variants"]) * experiment["points"] * experiment["repeats"]


def earlier(experiment):
    """Seconds for a run of the experiment, by its results here or by the kept ones; None without."""
    try:
        results = json.loads((directory(experiment) / "results.json").read_text())
        done = sum(cell["runs"] for cell in results["cells"]) - results["resumed"]
        if done > 0:
            return results["wall_s"] / done
    except (OSError, ValueError):
        pass
    try:
        kept = json.loads((KEPT / f"{experiment['id']}.json").read_text())
        return kept["wall_s"] / (runs(experiment) / experiment["repeats"] * kept["repeats"])
    except (OSError, ValueError, KeyError):
        return None


def directory(experiment):
    return RESULTS / experiment["id"].replace("/", "-")


def left(experiment):
    """Runs that are not in the directory of results."""
    try:
        with (directory(experiment) / "runs.jsonl").open() as lines:
            return max(0, runs(experiment) - sum(1 for _ in lines))
    except OSError:
        return runs(experiment)


def span(seconds):
    if seconds is None:
        return "not known"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def announce(experiments):
    """Prints what each backend's experiments take."""
    times = {experiment["id"]: earlier(experiment) for experiment in experiments}
    print("backend      experiments  timed     runs  of which left  time")
    for backend in ORDER:
        here = [experiment for experiment in experiments if experiment["backend"] == backend]
        if not here:
            continue
        known = [times[experiment["id"]] for experiment in here if times[experiment["id"]] is not None]
        usual = statistics.median(known) if known else None
        each = [times[experiment["id"]] or usual for experiment in here]
        is_known = all(seconds is not None for seconds in each)
        total = sum(seconds * left(one) for seconds, one in zip(each, here)) if is_known else None
        counts = sum(map(runs, here)), sum(map(left, here))
        print(f"{backend:12} {len(here):11} {len(known):6} {counts[0]:8} {counts[1]:14}  {span(total)}")
    print(flush=True)


def run(command, experiment):
    """Runs it; returns why it failed."""
    arguments = [command, "lab", "run", experiment["id"], "--out", str(directory(experiment))]
    begun = time.monotonic()
    ended = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    took = span(time.monotonic() - begun)
    if ended.returncode == 0:
        digest = [line for line in ended.stdout.splitlines() if line.startswith("digest ")]
        print(f"{experiment['id']}: {took}, {''.join(digest)}", flush=True)
        return None
    reason = (ended.stderr.strip().splitlines() or [f"status {ended.returncode}"])[-1]
    print(f"{experiment['id']}: {reason}", flush=True)
    return reason


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    listed = subprocess.run([options.command, "lab", "list", "--json"], check=True, stdout=subprocess.PIPE)
    experiments = json.loads(listed.stdout)
    if options.only:
        experiments = [one for one in experiments if one["id"].startswith(tuple(options.only))]
    experiments.sort(key=lambda one: (ORDER.index(one["backend"]), one["id"]))
    announce(experiments)
    if options.list:
        return 0
    failed = {one["id"]: reason for one in experiments if (reason := run(options.command, one))}
    for one in experiments:
        if reason := failed.get(one["id"]):
            word = "failed" if left(one) < runs(one) else "not run"
            print(f"{word}: {one['id']}: {reason}")
    if not options.only:
        print(f"not among these: {', '.join(OTHERS)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
