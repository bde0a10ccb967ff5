#!/usr/bin/env python3
"""marline beside nginx, Caddy and h2o as servers and as proxies: requests a second, CPU time, memory and latency.

    make bench-servers                                builds what is compared, and measures everything
    make bench-servers ARGS=--quick                   whether it works: one short round
    tools/bench_servers --only 'h3 proxy' --only full  tasks that have these words; --list prints all

Every round does a task with each server before the next task, and servers change their order from round to round.
A server starts anew for each measurement, on cores of its own if there are enough. One client, `interop/bench/load`,
makes all requests: by hyper over HTTP/1.1 and 2, by h3 with quinn over HTTP/3. All of it runs in a network namespace of
its own. MARLINE names the program (target/dist/marline unless it is set).
"""

import argparse
import dataclasses
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "product_rows"))

import process
import rig
import servers
import table
from measure import Bench, FailedError
from table import Measurement
from tasks import Layout, Task, all_tasks, select


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    names = [server.name for server in servers.SERVERS]
    parser = argparse.ArgumentParser(
        prog="bench_servers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], metavar="WORDS", help="tasks with all these words")
    parser.add_argument("--servers", default=",".join(names), help="by default %(default)s, those that are there")
    parser.add_argument("--cores", default="1,2", help="numbers of cores of the server (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="one round of 0.3 seconds, with one core")
    parser.add_argument("--out", type=Path, default=rig.ROOT / "target/bench-servers.md", help="(%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the tasks")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.seconds, given.cores = 1, 0.3, "1"
    try:
        given.cores = sorted({int(number) for number in given.cores.split(",")})
    except ValueError:
        parser.error(f"--cores {given.cores}: not numbers with commas")
    if given.rounds < 1 or not 0.1 <= given.seconds <= 120 or given.cores[0] < 1:
        parser.error("--rounds and --cores are at least 1, --seconds from 0.1 to 120")
    given.explicit = given.servers != parser.get_default("servers")
    given.servers = given.servers.split(",")
    if unknown := set(given.servers) - set(names):
        parser.error(f"--servers: {', '.join(sorted(unknown))} is not of {', '.join(names)}")
    return given


def available(given: argparse.Namespace) -> tuple[list[servers.Server], list[str]]:
    """The servers that are there, and what is said about the others; ends the program if it cannot do without."""
    wanted = [server for server in servers.SERVERS if server.name in given.servers]
    absent = [server for server in wanted if not server.present]
    lacking = [f"{server.name}: there is no {server.path} ({server.how})" for server in absent]
    needed = [text for server, text in zip(absent, lacking, strict=True) if given.explicit or server.name == table.OURS]
    if not servers.CLIENT.exists():
        needed.append(f"the client: there is no {servers.CLIENT} (make -C interop/bench load)")
    if not servers.NGINX.present:
        needed.append(f"the application behind proxies, nginx: there is no {servers.NGINX.path} ({servers.NGINX.how})")
    needed += [f"{tool} is not installed" for tool in ("taskset", "openssl") if not shutil.which(tool)]
    if needed:
        sys.exit("\n".join(needed))
    return [server for server in wanted if server.present], lacking


def chosen(given: argparse.Namespace) -> tuple[list[Task], dict[int, Layout]]:
    """The tasks, and the cores of the programs."""
    cores = sorted(os.sched_getaffinity(0))
    if given.cores[-1] > len(cores):
        sys.exit(f"--cores {given.cores[-1]}: this process may use {len(cores)}")
    try:
        tasks = select(all_tasks(given.cores), given.only)
    except ValueError as error:
        sys.exit(str(error))
    if not tasks:
        sys.exit("--only: no task has all these words")
    return tasks, {number: Layout.of(cores, number) for number in given.cores}


@dataclasses.dataclass
class Run:
    """What is measured, and what came of it."""

    given: argparse.Namespace
    tasks: list[Task]
    layouts: dict[int, Layout]
    compared: list[servers.Server]
    skipped: list[str]
    load: float = dataclasses.field(default_factory=process.load_average)
    measurements: list[Measurement] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)

    def all_rounds(self, bench: Bench) -> None:
        """Measures everything."""
        rounds = self.given.rounds
        planned = rounds * sum(server.does(task) for task in self.tasks for server in self.compared)
        done, begun = 0, time.monotonic()
        for number in range(rounds):
            shift = number % len(self.compared)
            order = self.compared[shift:] + self.compared[:shift]
            for task, server in itertools.product(self.tasks, order):
                if not server.does(task):
                    continue
                said = self.one(bench, number, task, server)
                done += 1
                left = (time.monotonic() - begun) / done * (planned - done) / 60
                say(f"{done}/{planned} {task.key:<14} {server.name:<8} {said}; {left:.0f} min left")

    def one(self, bench: Bench, number: int, task: Task, server: servers.Server) -> str:
        """A measurement, and what is said about it."""
        try:
            one = bench.measure(number, task, server)
        except FailedError as error:
            self.failures.append(f"{task.key}, {server.name}, round {number + 1}: {error}")
            return f"FAILED: {error}"
        self.measurements.append(one)
        return f"{one.requests_s:9,.0f}/s {one.cpu_ms:8.4f} ms CPU {one.server_load:5.0%} busy"

    def write(self) -> None:
        """Writes the tables, and all measurements beside them."""
        given, versions, machine = (
            self.given,
            {each.name: each.described() for each in self.compared},
            process.machine(),
        )
        notes = [f"{name} {version}" for name, version in versions.items()]
        notes += [f"skipped: {text}" for text in self.skipped] + [f"failed: {text}" for text in self.failures]
        text = table.tables(table.Results(self.measurements), self.tasks, list(versions), self.layouts)
        text += (
            f"Medians of {given.rounds} interleaved rounds of {given.seconds:g} s. Ratios in parentheses are to "
            f"{table.OURS}, and medians of those within each round. °: the server used less than {table.BUSY:.0%} of "
            f"its cores. †: fewer than {table.RESUMED:.0%} of the handshakes were resumed. "
            f"{machine}, load {self.load:.1f} before the start, {process.today()}.\n\n"
        )
        text += "".join(f"* {note}\n" for note in notes)
        everything = {
            "machine": machine,
            "date": process.today(),
            "load_before": self.load,
            "versions": versions,
            "rounds": given.rounds,
            "seconds": given.seconds,
            "cores": {number: dataclasses.asdict(layout) for number, layout in self.layouts.items()},
            "skipped": self.skipped,
            "failures": self.failures,
            "measurements": [dataclasses.asdict(each) for each in self.measurements],
        }
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)
        beside = given.out.with_suffix(".json")
        beside.write_text(json.dumps(everything, indent=1) + "\n")
        print(text)
        say(f"written to {given.out} and {beside}")


def main() -> int:
    """0 if all measurements succeeded."""
    given = arguments()
    tasks, layouts = chosen(given)
    if given.list:
        print("\n".join(task.key for task in tasks))
        return 0
    compared, skipped = available(given)
    if not rig.alone(sys.executable, sys.argv):
        sys.exit("the servers need a network namespace of their own (unshare --net --mount --pid)")
    for text in skipped:
        say(f"skipped: {text}")
    run = Run(given, tasks, layouts, compared, skipped)
    # What watches a server does not take its time.
    os.sched_setaffinity(0, layouts[given.cores[0]].client)
    with tempfile.TemporaryDirectory(prefix="bench-servers-") as directory:
        bench = Bench(directory, layouts, given.seconds)
        with bench.applications():
            run.all_rounds(bench)
    run.write()
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
