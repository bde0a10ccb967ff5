"""The files of an analysis: figures 4.3 to 4.7 of the study, the report, the document."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from marline.figures import Curve, CurveChart, Panel, Picture, StackChart, draw_curves, draw_stacks
from marline.flows.sessions.document import to_json
from marline.flows.sessions.page import PUBLISHED_SIZES, page
from marline.flows.sessions.report import Report
from marline.flows.sessions.summary import Class, Summary

_MOST_FLOWS = 10_000
"""Numbers of flows of a session that the figure distinguishes."""


def render(report: Report) -> dict[str, bytes]:
    """The files by name: ``sessions.json``, ``report.html``, and each figure as SVG and PNG."""
    figures = _figures(report.summary)
    files = {"sessions.json": (json.dumps(to_json(report.summary, report.reasons), indent=1) + "\n").encode()}
    for picture in figures.values():
        files[f"{picture.name}.svg"] = picture.to_svg().encode()
        files[f"{picture.name}.png"] = picture.to_png()
    files["report.html"] = page(report, figures).encode()
    return files


def _figures(summary: Summary) -> dict[str, Picture]:
    """The figures with data: without parallel sessions, or without bytes, there is no overlap."""
    percent = (0.0, 100.0)
    charts = {
        "flows-per-session": CurveChart(
            [Curve("sessions", _flows_per_session(summary))], "flows of a session", logarithmic=True
        )
    }
    stacks = {}
    if len(summary.time_overlap.values):
        charts |= {
            "time-overlap": CurveChart(
                [Curve("parallel sessions", summary.time_overlap.values)], "time overlap p, %", limits=percent
            ),
            "time-overlap-by-duration": CurveChart(
                _curves(summary.by_duration), "time overlap p, %; by the longest flow", limits=percent
            ),
        }
        stacks["longest-flows"] = _shares(summary.by_duration, {})
    if len(summary.data_overlap.values):
        charts |= {
            "data-overlap": CurveChart(
                [Curve("parallel sessions", summary.data_overlap.values)], "data overlap r, %", limits=(0.0, 300.0)
            ),
            "data-overlap-by-size": CurveChart(
                _curves(summary.by_size), "data overlap r, %; by the largest flow", limits=(0.0, 300.0)
            ),
        }
        stacks["largest-flows"] = _shares(summary.by_size, PUBLISHED_SIZES)
    figures = {name: draw_curves(name, chart) for name, chart in charts.items()}
    return figures | {name: draw_stacks(name, chart) for name, chart in stacks.items()}


def _shares(classes: tuple[Class, ...], published: Mapping[str, Sequence[float]]) -> StackChart:
    whole = max(1, sum(len(one.overlap.values) for one in classes))
    ours = [100 * len(one.overlap.values) / whole for one in classes]
    labels = ["here", *(f"study: {name}" for name in published)]
    panel = Panel("", [ours, *published.values()])
    return StackChart(labels, [one.name for one in classes], [panel], "parallel sessions, %")


def _curves(classes: tuple[Class, ...]) -> list[Curve]:
    return [Curve(one.name, one.overlap.values) for one in classes]


def _flows_per_session(summary: Summary) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A sorted series from counts, thinned if there are very many sessions."""
    counts = summary.flows_by_session
    thinned = -(-counts // max(1, int(counts.sum()) // _MOST_FLOWS))
    return np.repeat(np.arange(len(counts), dtype=np.float64), thinned)
