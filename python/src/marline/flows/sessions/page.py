"""The report page of an analysis."""

from collections.abc import Mapping
from typing import Final

from marline.figures import Picture
from marline.flows.sessions.options import ANY_VERSION
from marline.flows.sessions.report import Report
from marline.flows.sessions.summary import Class, Distribution, Summary
from marline.pages import Page, Table

# Of the study, sections 4.3.1 to 4.3.5; None where it prints no number.
_PUBLISHED = {
    "isolated flows": ("67.1 %", "65.3 %"),
    "parallel flows": ("32.9 %", "34.7 %"),
    "flows of a parallel session, mean": ("about 3", "about 3"),
    "median of the time overlap p": ("75 % or more", "63 % or more"),
    "mean overlap": ("58.5 s", "29 s"),
}

PUBLISHED_SIZES: Final[Mapping[str, tuple[float, ...]]] = {
    "campus": (18, 30, 25, 22, 6),
    "residential": (11, 21, 32, 27, 8),
}
"""Sessions by the class of their largest flow, percent (section 4.3.5)."""


def page(report: Report, figures: Mapping[str, Picture]) -> str:
    """The page as HTML."""
    summary, options = report.summary, report.options
    result = Page("Who opens parallel connections")
    result.answer(_answer(summary))
    version = "flows" if options.http == ANY_VERSION else f"flows of {options.http}"
    result.lead(
        f"Sessions of {summary.flows:,} {version}: those between one client and one server, for one name, that begin "
        f"within {options.gap_s:g} s of the first. Thesis of J. Manzoor (2019), chapter 4."
    )
    result.facts(
        [
            ("flows", f"{summary.flows:,}"),
            ("sessions", f"{summary.sessions:,}"),
            ("parallel flows", _percent(summary.parallel_flows, summary.flows)),
            ("median time overlap", _value(summary.time_overlap.percentile(50), " %")),
            ("median data overlap", _value(summary.data_overlap.percentile(50), " %")),
        ]
    )
    result.section("Isolated and parallel")
    result.table(_beside(summary))
    result.figure("Flows of a session (figure 4.3)", figures["flows-per-session"].to_inline_svg())
    _time_overlap(result, summary, figures)
    _data_overlap(result, summary, figures)
    result.section("How")
    result.text(
        f"{report.left_out:,} of {report.records:,} records are excluded, each for the first reason that applies. A "
        "session is parallel if its flows have two client ports or more. Flows without a name "
        "are of one name. Users behind one address are one client."
    )
    if report.reasons:
        rows = [[name, f"{count:,}"] for name, count in report.reasons.items()]
        result.table(Table(["excluded records", ""], rows, frozenset({1})))
    if options.without:
        result.text(f"Excluded clients: {', '.join(options.without)}.")
    command = ["python -m marline sessions", report.source.name, "-o DIR", f"--gap {options.gap_s:g}"]
    command += [f"--http {options.http}", *(f"--without {prefix}" for prefix in options.without)]
    result.footer(
        [("records", f"{report.source.name}, {report.format}"), ("repeat this", " ".join(command))],
    )
    return result.render()


def _time_overlap(result: Page, summary: Summary, figures: Mapping[str, Picture]) -> None:
    result.section("Overlap in time")
    if "time-overlap" not in figures:
        result.text("There is nothing to show: no session is parallel.")
        return
    result.text(
        "p is the share of a session's longest flow that the flow overlapping it longest overlaps. Connections that "
        "were opened to spare and closed at once have a small one, connections that are used together a large one."
    )
    result.table(_quartiles({"all parallel sessions": summary.time_overlap}, summary.by_duration))
    result.figure("Time overlap (figure 4.4)", figures["time-overlap"].to_inline_svg())
    result.figure("Sessions by their longest flow (figure 4.5)", figures["longest-flows"].to_inline_svg())
    result.figure("Time overlap by the longest flow (figure 4.6)", figures["time-overlap-by-duration"].to_inline_svg())
    result.text(
        "The study's example (table 4.3) has flows of 35.3, 0.4, 44.3, 148.9, 0.2 and 0.2 s, of which the third "
        "overlaps the fourth for 44.3 of its 148.9 s: p is 29.7 %."
    )


def _data_overlap(result: Page, summary: Summary, figures: Mapping[str, Picture]) -> None:
    result.section("Overlap in data")
    if "data-overlap" not in figures:
        result.text("There is nothing to show: no parallel session carries bytes.")
        return
    result.text(
        "r is what all flows of a session but the largest carry, as a share of the largest: at 100 % they carry as "
        "much as it does."
    )
    result.table(_quartiles({"all parallel sessions": summary.data_overlap}, summary.by_size))
    result.figure("Sessions by their largest flow", figures["largest-flows"].to_inline_svg())
    result.figure("Data overlap", figures["data-overlap"].to_inline_svg())
    result.figure("By the largest flow (figure 4.7)", figures["data-overlap-by-size"].to_inline_svg())


def _answer(summary: Summary) -> str:
    answer = f"{_percent(summary.parallel_flows, summary.flows)} of the flows are opened beside another"
    if summary.flows_per_parallel_session is None:
        return f"{answer}."
    return (
        f"{answer}, {summary.flows_per_parallel_session:.1f} together on average; half of these sessions use two "
        f"connections at once for {_value(summary.time_overlap.percentile(50), ' %')} of their time or more."
    )


def _beside(summary: Summary) -> Table:
    ours = {
        "isolated flows": _percent(summary.isolated_flows, summary.flows),
        "parallel flows": _percent(summary.parallel_flows, summary.flows),
        "flows of a parallel session, mean": _value(summary.flows_per_parallel_session, ""),
        "median of the time overlap p": _value(summary.time_overlap.percentile(50), " %"),
        "mean overlap": _value(summary.overlap_s_mean, " s"),
    }
    rows = [[name, value, *_PUBLISHED[name]] for name, value in ours.items()]
    return Table(["", "here", "study: campus", "study: residential"], rows, frozenset({1, 2, 3}))


def _quartiles(first: Mapping[str, Distribution], classes: tuple[Class, ...]) -> Table:
    rows = []
    whole = sum(len(one.overlap.values) for one in classes)
    for name, values in [*first.items(), *((one.name, one.overlap) for one in classes)]:
        share = _percent(len(values.values), whole)
        quartiles = (_value(values.percentile(percent), " %") for percent in (25, 50, 75))
        rows.append([name, f"{len(values.values):,}", share, *quartiles, _value(values.mean, " %")])
    return Table(["", "sessions", "share", "25th", "median", "75th", "mean"], rows, frozenset(range(1, 7)))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.1f}{unit}"
