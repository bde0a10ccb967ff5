"""A picture of values with their intervals, beside published ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import FIRST, INK, QUIET, RULE, SECOND, Picture, style


@dataclass(frozen=True, slots=True)
class Interval:
    """A value, its interval, and a published value."""

    label: str
    value: float
    low: float
    high: float
    published: Sequence[float]


@dataclass(frozen=True, slots=True)
class IntervalChart:
    """Intervals over one axis."""

    intervals: Sequence[Interval]
    title: str
    published_title: str


def draw_intervals(name: str, chart: IntervalChart) -> Picture:
    """Draw a chart."""
    with style():
        picture = Picture(name, 6.4, 1.0 + 0.34 * len(chart.intervals))
        height = picture.figure.get_figheight()
        axes = picture.figure.add_axes((0.18, 0.45 / height, 0.79, 1 - 0.85 / height))
        places = list(range(len(chart.intervals)))
        for place, one in zip(places, chart.intervals, strict=True):
            axes.hlines(place, one.low, one.high, color=FIRST, linewidth=2, alpha=0.5)
            axes.plot([one.value], [place], "o", color=FIRST, markersize=5, label="here" if place == 0 else None)
            label = chart.published_title if place == 0 else None
            axes.plot(one.published, [place] * len(one.published), "x", color=SECOND, markersize=6, label=label)
        axes.set_yticks(places, [one.label for one in chart.intervals])
        axes.set_ylim(len(places) - 0.4, -0.6)
        axes.set_xlabel(chart.title, color=QUIET, fontsize=8)
        axes.set_facecolor("none")
        axes.grid(axis="x", color=RULE, linewidth=0.6)
        axes.tick_params(colors=INK, labelsize=8, length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        picture.figure.legend(handles, labels, frameon=False, fontsize=8, labelcolor=INK, loc="upper center", ncols=2)
    return picture
