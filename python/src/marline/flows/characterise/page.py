"""The report page of a characterisation."""

from collections.abc import Callable, Mapping
from typing import Final

from marline.figures import Picture
from marline.flows.characterise.adoption import KINDS
from marline.flows.characterise.analysis import QUANTITIES, Distribution, Report
from marline.pages import Page, Table
from marline.text import short

Measure = Callable[[dict[str, Distribution]], float | None]


def _below(column: str, value: float) -> Measure:
    return lambda of: 100 * of[column].share_below(value) if column in of else None


def _from(column: str, value: float) -> Measure:
    return lambda of: 100 * (1 - of[column].share_below(value)) if column in of else None


def _between(column: str, low: float, high: float) -> Measure:
    return lambda of: 100 * (of[column].share_below(high) - of[column].share_below(low)) if column in of else None


PUBLISHED: Final[tuple[tuple[str, Measure, Mapping[str, float]], ...]] = (
    ("duration below 1 s", _below("duration_s", 1), {"h1": 25, "h2": 5}),
    ("duration of 1 to 10 s", _between("duration_s", 1, 10), {"h1": 13, "h2": 6}),
    ("duration of 100 s and more", _from("duration_s", 100), {"h1": 33, "h2": 53}),
    ("20 packets and more of the client", _from("client_packets", 20), {"h1": 22, "h2": 50}),
    ("20 packets and more of the server", _from("server_packets", 20), {"h1": 22, "h2": 50}),
    ("client's packets below 100 bytes in the mean", _below("client_bytes_per_packet", 100), {"h1": 55, "h2": 80}),
)
"""Shares of flows, percent, and the study's values in section 3.1."""

PUBLISHED_CHANGES: Final = (
    ("duration_s", "duration", 36.0),
    ("client_bytes_per_packet", "client's bytes a packet", -40.0),
    ("server_bytes_per_packet", "server's bytes a packet", -29.0),
)
"""Means of HTTP/2 against HTTP/1, percent, by the study."""


def page(report: Report, figures: Mapping[str, Picture]) -> str:
    """The page as HTML."""
    result = Page("What flows of each version of HTTP are like")
    result.answer(_answer(report))
    kinds = ", ".join(f"{kind.flows:,} of {kind.version}" for kind in report.kinds)
    result.lead(
        f"Flows to port 443 whose version is known: {kinds}. Thesis of J. Manzoor (2019), section 3.1; its figures are "
        "of a campus and of homes in 2016, and know no HTTP/3."
    )
    result.section("Beside the study")
    result.table(_shares(report))
    result.table(_changes(report))
    result.section("Duration")
    result.figure("Duration (figure 3.3a)", figures["duration"].to_inline_svg())
    result.section("Packets and bytes")
    result.text("Continuous lines are of data from the client, dashed ones of data from the server.")
    result.figure("Packets (figure 3.3b)", figures["packets"].to_inline_svg())
    result.figure("Mean size of packets (figure 3.3c)", figures["packet-size"].to_inline_svg())
    result.figure("Bytes (figure 3.3d)", figures["bytes"].to_inline_svg())
    result.section("Flow by flow")
    result.text(f"At most {report.options.sample:,} flows of each version, by the order of a hash.")
    result.figure("Sizes of packets (figure 3.3e)", figures["packet-sizes"].to_inline_svg())
    result.figure("Size of packets and duration (figure 3.3f)", figures["packet-size-duration"].to_inline_svg())
    if report.services:
        result.section("By service")
        result.text("The names of most flows, by the part that can be registered. Unknown are flows without a label.")
        result.figure("Versions by service (figure 3.2)", figures["adoption"].to_inline_svg())
        result.table(_services(report))
    result.section("All numbers")
    result.table(_quartiles(report))
    result.section("How")
    reasons = ", ".join(f"{count:,} {name}" for name, count in report.reasons.items())
    counted = f": {reasons}" if reasons else ""
    result.text(f"{report.left_out:,} of {report.records:,} records are excluded{counted}.")
    result.text(
        "Bytes are as recorded: with IP headers if the program that wrote the records counts these. Values are "
        "counted in bins that differ by 2.3 %; the shares at the ends of bins are exact."
    )
    options = f"--sample {report.options.sample} --services {report.options.services}"
    command = f"python -m marline characterise {report.source.name} -o DIR {options}"
    result.footer([("records", f"{report.source.name}, {report.format}"), ("repeat this", command)])
    return result.render()


def _answer(report: Report) -> str:
    medians = [
        f"{kind.of['duration_s'].percentile(50):.3g} s of {kind.version}"
        for kind in report.kinds
        if "duration_s" in kind.of
    ]
    return f"Half of the flows last at least {', '.join(medians)}."


def _shares(report: Report) -> Table:
    rows = []
    for name, measure, published in PUBLISHED:
        ours = [_percent(measure(kind.of)) for kind in report.kinds]
        rows.append([f"{name}, % of flows", *ours, f"{published['h1']:g}", f"{published['h2']:g}"])
    header = ["", *(kind.version for kind in report.kinds), "study: h1", "study: h2"]
    return Table(header, rows, frozenset(range(1, len(header))))


def _changes(report: Report) -> Table:
    """Means against those of HTTP/1."""
    of = {kind.version: kind.of for kind in report.kinds}
    others = [name for name in of if name != "h1"]
    rows = []
    for column, label, published in PUBLISHED_CHANGES:
        base = of.get("h1", {}).get(column)
        means = [of[name][column].mean if column in of[name] else None for name in others]
        ours = ["-" if base is None or mean is None or not base.mean else _change(mean / base.mean) for mean in means]
        rows.append([f"mean of {label}", *ours, f"{published:+.0f} %"])
    header = ["against h1", *others, "study: h2"]
    return Table(header, rows, frozenset(range(1, len(header))))


def _quartiles(report: Report) -> Table:
    rows = []
    for feature in QUANTITIES:
        for kind in report.kinds:
            distribution = kind.of.get(feature.column)
            if distribution is None:
                rows.append([feature.label, kind.version, *["-"] * 6])
                continue
            values = [distribution.percentile(percent) for percent in (5, 25, 50, 75, 95)]
            rows.append([feature.label, kind.version, *map(_short, [*values, distribution.mean])])
    return Table(["", "version", "5th", "25th", "median", "75th", "95th", "mean"], rows, frozenset(range(2, 8)))


def _services(report: Report) -> Table:
    rows = []
    for service in report.services:
        for period in service.periods:
            whole = sum(period.flows)
            shares = [f"{100 * count / whole:.1f} %" if whole else "-" for count in period.flows]
            rows.append([short(service.name), period.begin, f"{whole:,}", *shares])
    header = ["service", "from", "flows", *KINDS]
    return Table(header, rows, frozenset(range(2, len(header))))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f}"


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f} %"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
