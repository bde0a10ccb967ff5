"""The files of a characterisation: figures 3.2 and 3.3 of the study, the report, the document."""

import json

from marline.figures import (
    Cloud,
    Curve,
    CurveChart,
    Panel,
    Picture,
    ScatterChart,
    StackChart,
    draw_curves,
    draw_scatter,
    draw_stacks,
)
from marline.flows.characterise.adoption import KINDS, Service
from marline.flows.characterise.analysis import Report
from marline.flows.characterise.document import to_json
from marline.flows.characterise.page import page
from marline.text import short

_ENDS = ("client", "server")


def render(report: Report) -> dict[str, bytes]:
    """The files by name: ``characterise.json``, ``report.html``, and each figure as SVG and PNG."""
    figures = _figures(report)
    files = {"characterise.json": (json.dumps(to_json(report), indent=1) + "\n").encode()}
    for picture in figures.values():
        files[f"{picture.name}.svg"] = picture.to_svg().encode()
        files[f"{picture.name}.png"] = picture.to_png()
    files["report.html"] = page(report, figures).encode()
    return files


def _figures(report: Report) -> dict[str, Picture]:
    durations = CurveChart(_curves(report, ["duration_s"], [""]), "duration of a flow, s", logarithmic=True)
    figures = {"duration": draw_curves("duration", durations)}
    for name, column, title in (
        ("packets", "packets", "packets of a flow, by who sends them"),
        ("packet-size", "bytes_per_packet", "mean bytes of a flow's packets, by who sends them"),
        ("bytes", "bytes", "bytes of a flow, by who sends them"),
    ):
        columns = [f"{end}_{column}" for end in _ENDS]
        curves = CurveChart(_curves(report, columns, _ENDS), title, logarithmic=True, paired=True)
        figures[name] = draw_curves(name, curves)
    for name, up, title in (
        ("packet-sizes", "server_bytes_per_packet", "mean bytes of the server's packets"),
        ("packet-size-duration", "duration_s", "duration, s"),
    ):
        clouds = [Cloud(kind.version, kind.points["client_bytes_per_packet"], kind.points[up]) for kind in report.kinds]
        chart = ScatterChart(clouds, "mean bytes of the client's packets", title, logarithmic_up=up == "duration_s")
        figures[name] = draw_scatter(name, chart)
    if report.services:
        figures["adoption"] = draw_stacks("adoption", _adoption(report.services))
    return figures


def _curves(report: Report, columns: list[str], ends: tuple[str, ...] | list[str]) -> list[Curve]:
    return [
        Curve(f"{kind.version} {end}".strip(), kind.of[column].values, kind.of[column].counts)
        for kind in report.kinds
        for column, end in zip(columns, ends, strict=True)
        if column in kind.of
    ]


def _adoption(services: tuple[Service, ...]) -> StackChart:
    """The first period and the last; all services have the same ones."""
    spans = services[0].periods
    panels = [
        Panel(spans[at].begin if len(spans) > 1 else "", [_shares(service.periods[at].flows) for service in services])
        for at in sorted({0, len(spans) - 1})
    ]
    return StackChart([short(service.name) for service in services], KINDS, panels, "flows, %")


def _shares(flows: tuple[int, ...]) -> list[float]:
    whole = max(1, sum(flows))
    return [100 * count / whole for count in flows]
