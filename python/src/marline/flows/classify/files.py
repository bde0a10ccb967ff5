"""The files of an evaluation."""

import json

from marline.figures import Line, LineChart, Picture, draw_lines
from marline.flows.classify.document import to_json
from marline.flows.classify.evaluation import Evaluation
from marline.flows.classify.page import TITLES, page


def render(evaluation: Evaluation) -> dict[str, bytes]:
    """The files by name: ``classify.json``, ``report.html``, and the learning curve as SVG and PNG."""
    figures = {"learning-curve": _curve(evaluation)}
    files = {"classify.json": (json.dumps(to_json(evaluation), indent=1) + "\n").encode()}
    for picture in figures.values():
        files[f"{picture.name}.svg"] = picture.to_svg().encode()
        files[f"{picture.name}.png"] = picture.to_png()
    files["report.html"] = page(evaluation, figures).encode()
    return files


def _curve(evaluation: Evaluation) -> Picture:
    lines = [
        Line(
            TITLES[result.algorithm],
            [point.flows for point in result.curve],
            [100 * point.accuracy for point in result.curve],
        )
        for result in evaluation.results
    ]
    return draw_lines("learning-curve", LineChart(lines, "flows learnt from", "accuracy, %"))
