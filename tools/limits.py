#!/usr/bin/env python3
"""Compares the default's time for 10 MB with what each link carries in the long run.

Reads `runs.csv` of the experiment `default/limits` and prints a table in Markdown. The limit of a link is the time in
which the fastest of four controllers would transfer 10 MB at the rate of its last 40 of 50 MB, and what the ideal has
besides: round trips of the handshake and of the request. Slow start is not in it.

    marline lab run default/limits
    tools/limits.py lab-results/default/limits
"""

import argparse
import csv
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SHORT, LONG = "10_mb", "50_mb"
SHORT_MB, LONG_MB = 10, 50
GOAL = 1.15


@dataclass(frozen=True)
class Link:
    """What was seen on a link; times in seconds."""

    name: str
    ideal: float
    limit: float
    fastest: str
    default: float


def medians(runs: Path) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str], float]]:
    """Median completion by (variant, link, size) of runs that all ended, and the ideal by (link, size)."""
    times = defaultdict(list)
    ideals = {}
    unfinished = set()
    with runs.open(newline="") as file:
        for row in csv.DictReader(file):
            cell = (row["variant"], row["over"], row["fetch"])
            if row["status"] == "ok":
                times[cell].append(float(row["completion_s"]))
                ideals[row["over"], row["fetch"]] = float(row["ideal_s"])
            else:
                unfinished.add(cell)
    return {cell: statistics.median(seen) for cell, seen in times.items() if cell not in unfinished}, ideals


def links(runs: Path) -> list[Link]:
    """The links, in the order of the file."""
    times, ideals = medians(runs)
    found = []
    for name in dict.fromkeys(link for _, link, _ in times):
        megabytes_per_second = {
            variant: (LONG_MB - SHORT_MB) / (took - times[variant, name, SHORT])
            for (variant, link, size), took in times.items()
            if link == name and size == LONG and (variant, name, SHORT) in times
        }
        fastest = max(megabytes_per_second, key=lambda variant: megabytes_per_second[variant])
        of_rate = (ideals[name, LONG] - ideals[name, SHORT]) * SHORT_MB / (LONG_MB - SHORT_MB)
        limit = ideals[name, SHORT] - of_rate + SHORT_MB / megabytes_per_second[fastest]
        found.append(Link(name, ideals[name, SHORT], limit, fastest, times["default", name, SHORT]))
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Compares the default with what links carry in the long run.")
    parser.add_argument("results", type=Path, help="the directory with the results of default/limits")
    runs = parser.parse_args().results / "runs.csv"
    try:
        seen = links(runs)
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"{runs}: {error!r}; give the directory that `marline lab run default/limits` wrote")
    print("| | ideal | limit | with | `default` | by the ideal | by the limit |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    for link in seen:
        by_ideal, by_limit = link.default / link.ideal, link.default / link.limit
        cells = f"{link.ideal:.2f} s | {link.limit:.2f} s | `{link.fastest}` | {link.default:.2f} s"
        print(f"| {link.name} | {cells} | {by_ideal:.2f} | {by_limit:.2f} |")
    ratios = [link.default / link.limit for link in seen]
    within = sum(ratio <= GOAL for ratio in ratios)
    print(f"\nMedian by the limit: {statistics.median(ratios):.2f}; within {GOAL}: {within} of {len(seen)} links.")


if __name__ == "__main__":
    main()
