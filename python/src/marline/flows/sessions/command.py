"""``python -m marline sessions``."""

import argparse
import ipaddress
from pathlib import Path

from marline.arguments import number
from marline.flows.sessions.document import to_json
from marline.flows.sessions.files import render
from marline.flows.sessions.options import ENGINES, HTTP_VERSIONS, Options
from marline.flows.sessions.report import Report, analyse
from marline.output import Forms


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "sessions",
        help="who opens parallel connections, and whether they are used together",
        description="Group flows into sessions, and tell isolated flows from those that are opened beside others.",
        epilog="example: python -m marline sessions flows.parquet --http any --without 10.8.0.0/16 -o sessions",
    )
    parser.add_argument(
        "flows",
        type=Path,
        metavar="FILE",
        help="a table of flows (Parquet, CSV, JSON), Tstat's log_tcp_complete, Zeek's conn.log (with ssl.log and "
        "quic.log beside it), or nfdump's CSV or JSON; may be compressed (gzip, bzip2, xz, Zstandard)",
    )
    Forms.add_options(parser)
    parser.add_argument(
        "--gap", type=_gap, default=5.0, metavar="S", help="flows begin at most so long after the session's first (5)"
    )
    parser.add_argument("--http", choices=HTTP_VERSIONS, default="h2", help="the version whose flows are taken (h2)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        type=_prefix,
        metavar="CLIENT",
        help="leave out an address or a prefix (10.8.0.0/13, 2001:db8::/32) with many users behind it; can be repeated",
    )
    parser.add_argument("--engine", choices=ENGINES, default="duckdb", help="engine for the flows (duckdb)")
    parser.add_argument(
        "--spark-master", default="local[*]", metavar="URL", help="where Spark runs (local[*]: on this machine)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Analyse, write, print. Raises :class:`marline.MarlineError`."""
    options = Options(arguments.gap, arguments.http, tuple(arguments.without), arguments.engine, arguments.spark_master)
    forms = Forms(table, lambda report: to_json(report.summary, report.reasons), render)
    forms.put_out(lambda: analyse(arguments.flows, options), arguments)


def table(report: Report) -> str:
    """The summary in a few lines."""
    summary = report.summary
    lines = [
        f"{'':10}{'flows':>14}{'':>9}{'sessions':>14}",
        _line("isolated", summary.isolated_flows, summary.flows, summary.isolated_sessions),
        _line("parallel", summary.parallel_flows, summary.flows, summary.parallel_sessions),
    ]
    if summary.parallel_sessions:
        p, r = summary.time_overlap.percentile(50), summary.data_overlap.percentile(50)
        lines.append(
            f"a parallel session has {summary.flows_per_parallel_session:.2f} flows; medians: "
            f"time overlap {p:.1f} %, data overlap {'-' if r is None else f'{r:.1f} %'}"
        )
    if report.left_out:
        reasons = ", ".join(f"{count:,} {name}" for name, count in report.reasons.items())
        lines.append(f"{report.left_out:,} of {report.records:,} records are excluded: {reasons}")
    return "\n".join(lines) + "\n"


def _line(name: str, flows: int, all_flows: int, sessions: int) -> str:
    return f"{name:10}{flows:>14,}{100 * flows / all_flows:>7.1f} %{sessions:>14,}"


def _gap(text: str) -> float:
    value = number(text)
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to 86400, and is {text}")
    return value


def _prefix(text: str) -> str:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be an address or a prefix, and is {text}") from error
    return str(network)
