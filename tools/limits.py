#!/usr/bin/env python3
"""Compares the default's times for 1 and 10 MB with what slow start and the links allow.

Reads `runs.csv` of an experiment and prints a table in Markdown. The limit is the time in which an object would arrive
with what the ideal has besides the rate, round trips of the handshake and of the request, and with slow start from an
unknown path: a window of ten packets that doubles in each round trip until it fills the link, and loses nothing. The
rate is that at which the fastest of four controllers transfers the last 40 of 50 MB; with `--grid`, where links carry
what their rate says, that of the ideal, whatever is lost.

    marline lab run default/limits
    tools/limits.py lab-results/default-limits
    marline lab run default/controllers
    tools/limits.py --grid lab-results/default-controllers
"""

import argparse
import csv
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

SIZES = {"1_mb": 1e6, "10_mb": 10e6}
LONG, LONG_BYTES = "50_mb", 50e6
SHORT = "10_mb"

# Ten datagrams of the size that every path carries (RFC 9002, section 7.2), as if they were content and nothing else.
INITIAL_WINDOW = 10 * 1200

# Round trips of the ideal: handshake and request.
IDEAL_ROUND_TRIPS = 2

GOAL = 1.15

LOSSES = {"none": "none lost", "1": "1 % lost", "3": "3 % lost", "5_in_rows": "5 % lost in rows", "all": "all"}


@dataclass(frozen=True)
class Transfer:
    """An object over a link; times in seconds."""

    ideal: float
    # At the rate that the link carries, without and with slow start.
    unstarted: float
    limit: float
    default: float


@dataclass(frozen=True)
class Link:
    """What was seen on a link; its rate in bytes of content per second."""

    name: str
    rate: float
    fastest: str
    transfers: dict[str, Transfer]


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


def slow_start(size: float, rate: float, rtt: float) -> float:
    """Seconds from the first byte's arrival to the last one's, with a window that doubles until it fills the link."""
    elapsed, window = 0.0, float(INITIAL_WINDOW)
    while window < rate * rtt and window < size:
        elapsed += rtt
        size -= window
        window *= 2
    return elapsed + size / rate


def transfer(content: float, ideal: float, ideal_rate: float, rate: float, default: float) -> Transfer:
    """What is seen of `content` bytes, and what a link of `rate` allows; the ideal is at `ideal_rate`."""
    delay = ideal - content / ideal_rate
    return Transfer(
        ideal=ideal,
        unstarted=delay + content / rate,
        limit=delay + slow_start(content, rate, delay / IDEAL_ROUND_TRIPS),
        default=default,
    )


def links(runs: Path) -> list[Link]:
    """The links, in the order of the file."""
    times, ideals = medians(runs)
    found = []
    for name in dict.fromkeys(link for _, link, _ in times):
        rates = {
            variant: (LONG_BYTES - SIZES[SHORT]) / (took - times[variant, name, SHORT])
            for (variant, link, size), took in times.items()
            if link == name and size == LONG and (variant, name, SHORT) in times
        }
        fastest = max(rates, key=lambda variant: rates[variant])
        rate = rates[fastest]
        ideal_rate = (LONG_BYTES - SIZES[SHORT]) / (ideals[name, LONG] - ideals[name, SHORT])
        transfers = {
            size: transfer(content, ideals[name, size], ideal_rate, rate, times["default", name, size])
            for size, content in SIZES.items()
        }
        found.append(Link(name, rate, fastest, transfers))
    return found


def grid(runs: Path) -> dict[str, dict[str, list[Transfer]]]:
    """The transfers of `wireless` by size and by what the links lose, over the points, without runs that failed."""
    times = defaultdict(list)
    ideals = {}
    with runs.open(newline="") as file:
        for row in csv.DictReader(file):
            size = row["fetch"]
            if row["variant"] == "wireless" and row["status"] == "ok" and size in SIZES:
                point = (row["link.rate"], row["link.rtt"], row["link.buffer"], row["losses"])
                times[point, size].append(float(row["completion_s"]))
                ideals[point, size] = float(row["ideal_s"])
    found: dict[str, dict[str, list[Transfer]]] = {size: defaultdict(list) for size in SIZES}
    for (point, size), took in times.items():
        short, long = SIZES
        rate = (SIZES[long] - SIZES[short]) / (ideals[point, long] - ideals[point, short])
        seen = transfer(SIZES[size], ideals[point, size], rate, rate, statistics.median(took))
        for losses in (point[-1], "all"):
            found[size][losses].append(seen)
    return found


def print_grid(seen: dict[str, dict[str, list[Transfer]]]) -> None:
    """A row for each object and what is lost: medians over the points."""
    print(f"| | limit by the ideal | `default` by the ideal | by the limit | within {GOAL} of it |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for size, by_losses in seen.items():
        for losses, words in LOSSES.items():
            transfers = by_losses[losses]
            by_limit = [transfer.default / transfer.limit for transfer in transfers]
            medians_of = [
                statistics.median(one.limit / one.ideal for one in transfers),
                statistics.median(one.default / one.ideal for one in transfers),
                statistics.median(by_limit),
            ]
            within = sum(ratio <= GOAL for ratio in by_limit)
            cells = " | ".join(f"{value:.2f}" for value in medians_of)
            print(f"| {size.replace('_mb', ' MB')}, {words} | {cells} | {within} of {len(transfers)} |")


def print_links(seen: list[Link]) -> None:
    """A row for each link, and medians over them."""
    heads = [f"{size.replace('_mb', ' MB')}: ideal | limit | `default` | by the limit" for size in SIZES]
    print(f"| | carries | with | {' | '.join(heads)} |")
    print(f"| --- | ---: | --- {'| ---: ' * 4 * len(SIZES)}|")
    for link in seen:
        cells = [
            f"{transfer.ideal:.2f} s | {transfer.limit:.2f} s | {transfer.default:.2f} s | "
            f"{transfer.default / transfer.limit:.2f}"
            for transfer in link.transfers.values()
        ]
        print(f"| {link.name} | {link.rate * 8 / 1e6:.1f} Mb/s | `{link.fastest}` | {' | '.join(cells)} |")
    for size in SIZES:
        transfers = [link.transfers[size] for link in seen]
        by_limit = [transfer.default / transfer.limit for transfer in transfers]
        by_unstarted = [transfer.default / transfer.unstarted for transfer in transfers]
        by_ideal = [transfer.limit / transfer.ideal for transfer in transfers]
        within = sum(ratio <= GOAL for ratio in by_limit)
        print(
            f"\n{size}: the limit is {statistics.median(by_ideal):.2f} times the ideal at the median, the default "
            f"{statistics.median(by_limit):.2f} times the limit, within {GOAL} on {within} of {len(seen)} links; "
            f"{statistics.median(by_unstarted):.2f} times the limit without slow start."
        )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Compares the default with what slow start and links allow.")
    parser.add_argument("--grid", action="store_true", help="they are of default/controllers, not of default/limits")
    parser.add_argument("results", type=Path, help="the directory with the results")
    arguments = parser.parse_args()
    runs = arguments.results / "runs.csv"
    try:
        if arguments.grid:
            print_grid(grid(runs))
        else:
            print_links(links(runs))
    except (OSError, KeyError, ValueError) as error:
        wanted = "default/controllers" if arguments.grid else "default/limits"
        sys.exit(f"{runs}: {error!r}; give the directory that `marline lab run {wanted}` wrote")


if __name__ == "__main__":
    main()
