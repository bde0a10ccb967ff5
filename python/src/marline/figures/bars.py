"""A picture of bars, with a point beside each."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import FIRST, INK, QUIET, RULE, SECOND, Picture, style


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar and a point for one item."""

    label: str
    length: float
    point: float


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars at the left, and points at the right."""

    bars: Sequence[Bar]
    length_title: str
    """The quantity of the bars, from 0 to 1."""
    point_title: str
    """The quantity of the points, from 0 to 100."""
    line: float
    """Among the points."""
    line_title: str


def draw_bars(name: str, chart: BarChart) -> Picture:
    """Draw a chart."""
    bars = chart.bars
    with style():
        picture = Picture(name, 8.4, 0.75 + 0.21 * len(bars))
        left, right = picture.figure.subplots(
            1, 2, sharey=True, gridspec_kw={"left": 0.25, "right": 0.985, "top": 0.985, "wspace": 0.1}
        )
        picture.figure.subplots_adjust(bottom=0.5 / picture.figure.get_figheight())
        places = range(len(bars))
        left.barh(places, [bar.length for bar in bars], color=FIRST, height=0.62)
        left.set_yticks(places, [bar.label for bar in bars])
        left.set_ylim(len(bars) - 0.4, -0.6)
        left.set_xlim(0, 1.0)
        left.set_xlabel(chart.length_title)
        right.hlines(places, 0, [bar.point for bar in bars], color=RULE, linewidth=1)
        right.plot([bar.point for bar in bars], list(places), "o", color=SECOND, markersize=4.5)
        right.axvline(chart.line, color=QUIET, linewidth=1, linestyle=(0, (3, 2)))
        right.set_xlim(0, 100)
        right.set_xlabel(f"{chart.point_title} (dashed: {chart.line_title})")
        for axes in (left, right):
            axes.set_facecolor("none")
            axes.grid(axis="x", color=RULE, linewidth=0.6)
            axes.set_axisbelow(True)
            axes.tick_params(colors=INK, labelsize=8, length=0)
            axes.xaxis.label.set(color=QUIET, fontsize=8)
            for spine in axes.spines.values():
                spine.set_visible(False)
    return picture
