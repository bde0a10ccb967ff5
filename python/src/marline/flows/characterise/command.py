"""``python -m marline characterise``."""

import argparse
from pathlib import Path

from marline.arguments import number
from marline.flows.characterise.analysis import Distribution, Report, analyse
from marline.flows.characterise.document import to_json
from marline.flows.characterise.files import render
from marline.flows.characterise.options import Options
from marline.output import Forms


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "characterise",
        help="characteristics of flows of HTTP/1, 2 and 3, and the versions that services use",
        description="Distributions of duration, packets and bytes of labelled flows, by version of HTTP.",
        epilog="example: python -m marline characterise flows.parquet -o characteristics",
    )
    parser.add_argument(
        "flows",
        type=Path,
        metavar="FILE",
        help="a table of flows (Parquet, CSV), Tstat's log_tcp_complete, or Zeek's conn.log, with labels; may be "
        "larger than memory",
    )
    Forms.add_options(parser)
    parser.add_argument(
        "--sample", type=_count, default=1500, metavar="N", help="flows of each version drawn as points (1500)"
    )
    parser.add_argument(
        "--services", type=_count, default=10, metavar="N", help="services whose versions are shown (10)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Analyse, write, print. Raises :class:`marline.MarlineError`."""
    options = Options(arguments.sample, arguments.services)
    Forms(table, to_json, render).put_out(lambda: analyse(arguments.flows, options), arguments)


def table(report: Report) -> str:
    """The versions in a line each."""
    columns = {
        "duration": ("duration_s", " s"),
        "packets up": ("client_packets", ""),
        "down": ("server_packets", ""),
        "bytes up": ("client_bytes", ""),
        "bytes down": ("server_bytes", ""),
    }
    lines = [f"{'medians':10}{'flows':>14}" + "".join(f"{name:>13}" for name in columns)]
    for kind in report.kinds:
        values = "".join(f"{_median(kind.of.get(column), unit):>13}" for column, unit in columns.values())
        lines.append(f"{kind.version:10}{kind.flows:>14,}{values}")
    if report.left_out:
        reasons = ", ".join(f"{count:,} {name}" for name, count in report.reasons.items())
        lines.append(f"{report.left_out:,} of {report.records:,} records are excluded: {reasons}")
    return "\n".join(lines) + "\n"


def _median(distribution: Distribution | None, unit: str) -> str:
    if distribution is None:
        return "-"
    value = distribution.percentile(50)
    return f"{value:,.0f}{unit}" if value >= 100 else f"{value:.3g}{unit}"


def _count(text: str) -> int:
    value = number(text)
    if not 1 <= value <= 100_000 or value != int(value):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 100000, and is {text}")
    return int(value)
