"""A picture of points."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.arrays import Numbers
from marline.figures.picture import LINES, Picture, dress, logarithmic, style

_MARKERS = ("o", "x", "^", "s", "+")


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points that belong together."""

    label: str
    across: Numbers
    up: Numbers


@dataclass(frozen=True, slots=True)
class ScatterChart:
    """Clouds over two axes."""

    clouds: Sequence[Cloud]
    across_title: str
    up_title: str
    logarithmic_up: bool = False
    """Points that are not above 0 cannot be shown then, and are omitted."""


def draw_scatter(name: str, chart: ScatterChart) -> Picture:
    """Draw a chart."""
    with style():
        picture = Picture(name, 6.4, 4.2)
        axes = picture.figure.add_axes((0.1, 0.12, 0.87, 0.85))
        for at, cloud in enumerate(chart.clouds):
            shown = (cloud.up > 0) | (not chart.logarithmic_up)
            axes.plot(
                cloud.across[shown],
                cloud.up[shown],
                _MARKERS[at % len(_MARKERS)],
                color=LINES[at % len(LINES)][0],
                markersize=3,
                markerfacecolor="none",
                markeredgewidth=0.7,
                alpha=0.7,
                label=f"{cloud.label} ({int(shown.sum()):,})",
            )
        if chart.logarithmic_up:
            logarithmic(axes, "y")
        axes.set_xlabel(chart.across_title)
        axes.set_ylabel(chart.up_title)
        dress(axes)
    return picture
