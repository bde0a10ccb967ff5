"""Medians, ratios within rounds, and the tables in Markdown."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tasks import Layout, Task

OURS = "marline"
# A server that used less of its cores could have done more.
BUSY = 0.9
# The share of handshakes that servers resume of those that may be.
RESUMED = 0.9


@dataclass(frozen=True)
class Measurement:
    """What was measured of a server with a task, in a round."""

    round: int
    task: str
    server: str
    requests_s: float
    # Of the server, for each request.
    cpu_ms: float
    p50_ms: float
    p99_ms: float
    pss_mib: float
    rss_mib: float
    # The share of its cores that the server used, and the client of its own.
    server_load: float
    client_load: float
    requests: int
    full_handshakes: int

    @property
    def resumed(self) -> float:
        """The share of connections that resumed a session, for tasks with a connection for each request."""
        return 1 - self.full_handshakes / self.requests


@dataclass(frozen=True)
class Metric:
    """What a table shows."""

    title: str
    name: str
    show: Callable[[float], str]
    # Whether less is better.
    less: bool = True
    # A second value in the same cell.
    beside: str = ""


def plain(value: float) -> str:
    """With three digits, and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


METRICS = [
    Metric("Requests a second", "requests_s", plain, less=False),
    Metric("CPU time of the server for a request, ms", "cpu_ms", plain),
    Metric("Latency, ms: median, 99th percentile", "p50_ms", plain, beside="p99_ms"),
    Metric("Memory at its peak, MiB: PSS, RSS", "pss_mib", plain, beside="rss_mib"),
]


class Results:
    """All measurements, by task and server."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.cells: dict[tuple[str, str], dict[int, Measurement]] = {}
        for each in measurements:
            self.cells.setdefault((each.task, each.server), {})[each.round] = each

    def values(self, task: str, server: str, name: str) -> dict[int, float]:
        """A metric by round."""
        return {number: getattr(each, name) for number, each in self.cells.get((task, server), {}).items()}

    def median(self, task: str, server: str, name: str) -> float | None:
        """Of all rounds."""
        values = self.values(task, server, name)
        return statistics.median(values.values()) if values else None

    def ratio(self, task: str, server: str, to: str, name: str) -> float | None:
        """The median of the ratios within each round that has both."""
        above, below = self.values(task, server, name), self.values(task, to, name)
        ratios = [above[number] / below[number] for number in above.keys() & below.keys() if below[number]]
        return statistics.median(ratios) if ratios else None

    def best(self, task: str, others: list[str], metric: Metric) -> tuple[str, float] | None:
        """The best of the others by its median ratio to ours, and ours to it."""
        ratios = {each: self.ratio(task, OURS, each, metric.name) for each in others}
        known = {each: ratio for each, ratio in ratios.items() if ratio is not None}
        if not known:
            return None
        name = (max if metric.less else min)(known, key=lambda each: known[each])
        return name, known[name]


def cell(results: Results, task: Task, server: str, metric: Metric) -> str:
    """A median, and its ratio to ours."""
    value = results.median(task.key, server, metric.name)
    if value is None:
        return "-"
    text = metric.show(value)
    if task.reuse == "resume" and (results.median(task.key, server, "resumed") or 0) < RESUMED:
        text += "†"
    if metric.beside:
        second = results.median(task.key, server, metric.beside)
        return f"{text}, {metric.show(second or 0)}"
    if metric.name == "requests_s" and (results.median(task.key, server, "server_load") or 0) < BUSY:
        text += "°"
    ratio = None if server == OURS else results.ratio(task.key, server, OURS, metric.name)
    return text if ratio is None else f"{text} ({ratio:.2f})"


def tables(results: Results, tasks: list[Task], names: list[str], layouts: dict[int, Layout]) -> str:
    """The tables of each number of cores."""
    text = ""
    for cores, layout in layouts.items():
        rows = [task for task in tasks if task.cores == cores]
        if not rows:
            continue
        text += f"## Server on {cores} {'core' if cores == 1 else 'cores'}\n\n{placed(layout)}\n\n"
        for metric in METRICS:
            text += one(results, rows, names, metric) + "\n"
    return text


def placed(layout: Layout) -> str:
    """Where the programs run."""

    def listed(cores: list[int]) -> str:
        return f"{'core' if len(cores) == 1 else 'cores'} {', '.join(map(str, cores))}"

    text = f"Server on {listed(layout.server)}, client on {listed(layout.client)}, "
    text += f"application on {listed(layout.application)}."
    if layout.shared:
        text += (
            " The client has no cores of its own: requests a second and latencies are those of both, "
            "CPU time is the server's alone."
        )
    return text


def one(results: Results, rows: list[Task], names: list[str], metric: Metric) -> str:
    """The table of a metric."""
    others = [name for name in names if name != OURS]
    columns = [metric.title, *names]
    compared = OURS in names and bool(others)
    if compared:
        columns.append(f"{OURS} to the best other")
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    for task in rows:
        cells = [task.title, *(cell(results, task, name, metric) for name in names)]
        if compared:
            best = results.best(task.key, others, metric)
            cells.append("-" if best is None else f"{best[1]:.2f} ({best[0]})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
