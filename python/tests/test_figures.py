"""Pictures show all of their data."""

import numpy as np
import pytest

from marline.figures import Curve, CurveChart, Line, LineChart, draw_curves, draw_lines


def test_numbers_beside_an_axis_are_within_the_picture_and_the_legend_is_on_no_line() -> None:
    lines = [
        Line(name, [100, 1000, 10_000], [1e6, 1e8, 3e9]) for name in ("Random Forest", "C4.5", "NBTree", "BayesNet")
    ]
    figure = draw_lines("rate", LineChart(lines, "flows learnt from", "flows classified/s", logarithmic_up=True)).figure
    figure.draw_without_rendering()
    (axes,) = figure.axes
    whole = axes.get_tightbbox()
    assert whole is not None
    assert whole.x0 >= 0
    assert whole.x1 <= figure.bbox.x1
    assert whole.y1 <= figure.bbox.y1
    legend = axes.get_legend()
    assert legend is not None
    assert not axes.bbox.overlaps(legend.get_window_extent())


@pytest.mark.parametrize(("most", "ticks"), [(6, ["1", "2", "3", "4", "5", "6"]), (300, ["1", "10", "100"])])
def test_a_short_logarithmic_axis_has_all_numbers(most: int, ticks: list[str]) -> None:
    chart = CurveChart([Curve("some", np.arange(1.0, most + 1))], "flows", logarithmic=True)
    (axes,) = draw_curves("some", chart).figure.axes
    low, high = axes.get_xlim()
    shown = [
        label.get_text()
        for at, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if low <= at <= high
    ]
    assert shown == ticks
