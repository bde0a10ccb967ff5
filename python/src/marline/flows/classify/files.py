"""The files of an evaluation: figures 3.4 to 3.7 of the study, the report, the document."""

import json
from collections.abc import Callable

import numpy as np

from marline.figures import (
    Interval,
    IntervalChart,
    Line,
    LineChart,
    Matrix,
    MatrixChart,
    Picture,
    RankChart,
    draw_intervals,
    draw_lines,
    draw_matrices,
    draw_ranks,
)
from marline.flows.classify.document import to_json
from marline.flows.classify.evaluation import Evaluation, Point, Result
from marline.flows.classify.page import PUBLISHED, TITLES, page


def render(evaluation: Evaluation) -> dict[str, bytes]:
    """The files by name: ``classify.json``, ``report.html``, and each figure as SVG and PNG."""
    figures = _figures(evaluation)
    files = {"classify.json": (json.dumps(to_json(evaluation), indent=1) + "\n").encode()}
    for picture in figures.values():
        files[f"{picture.name}.svg"] = picture.to_svg().encode()
        files[f"{picture.name}.png"] = picture.to_png()
    files["report.html"] = page(evaluation, figures).encode()
    return files


def _figures(evaluation: Evaluation) -> dict[str, Picture]:
    learnt = "flows learnt from"
    charts = {
        "learning-curve": LineChart(_lines(evaluation, lambda point: 100 * point.accuracy), learnt, "accuracy, %"),
        "training-time": LineChart(
            _lines(evaluation, lambda point: point.train_s), learnt, "training, s", logarithmic_up=True
        ),
        "classification-rate": LineChart(
            _lines(evaluation, lambda point: point.classify_per_s), learnt, "flows classified/s", logarithmic_up=True
        ),
    }
    figures = {name: draw_lines(name, chart) for name, chart in charts.items()}
    figures["accuracy"] = draw_intervals("accuracy", _accuracy(evaluation))
    figures["confusion"] = draw_matrices("confusion", _confusion(evaluation))
    best = max(evaluation.results, key=lambda result: result.confusion.accuracy)
    if best.services:
        figures["services"] = draw_ranks("services", _services(best))
    return figures


def _lines(evaluation: Evaluation, up: Callable[[Point], float]) -> list[Line]:
    return [
        Line(TITLES[result.algorithm], [point.flows for point in result.curve], list(map(up, result.curve)))
        for result in evaluation.results
    ]


def _accuracy(evaluation: Evaluation) -> IntervalChart:
    intervals = []
    for result in evaluation.results:
        low, high = (100 * end for end in result.confusion.interval)
        published = PUBLISHED[result.algorithm]["accuracy"]
        intervals.append(Interval(TITLES[result.algorithm], 100 * result.confusion.accuracy, low, high, published))
    return IntervalChart(intervals, "accuracy, %", "the study's flows, campus and residential")


def _confusion(evaluation: Evaluation) -> MatrixChart:
    matrices = []
    for result in evaluation.results:
        counts = result.confusion.counts.astype(np.float64)
        whole = counts.sum(axis=1, keepdims=True)
        shares = np.full_like(counts, np.nan)
        np.divide(100 * counts, whole, out=shares, where=whole > 0)
        matrices.append(Matrix(TITLES[result.algorithm], shares))
    return MatrixChart(matrices, evaluation.sample.names, "taken for", "is")


def _services(result: Result) -> RankChart:
    return RankChart(
        [100 * service.accuracy for service in result.services],
        [100 * service.flows / result.confusion.rows for service in result.services],
        100 * result.confusion.accuracy,
        f"accuracy of {TITLES[result.algorithm]}, %",
        "share of the flows, %",
        "names, those of most flows first",
    )
