"""A picture of lines over a logarithmic axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import LINES, Picture, dress, logarithmic, style


@dataclass(frozen=True, slots=True)
class Line:
    """Points that belong together."""

    label: str
    across: Sequence[float]
    up: Sequence[float]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over one axis."""

    lines: Sequence[Line]
    across_title: str
    up_title: str
    logarithmic_up: bool = False


def draw_lines(name: str, chart: LineChart) -> Picture:
    """Draw a chart."""
    with style():
        picture = Picture(name, 6.4, 3.6)
        axes = picture.figure.add_axes((0.1, 0.14, 0.87, 0.82))
        for at, line in enumerate(chart.lines):
            colour, dashes = LINES[at % len(LINES)]
            axes.plot(
                line.across,
                line.up,
                "o",
                color=colour,
                linestyle=dashes,
                linewidth=1.5,
                markersize=3.5,
                label=line.label,
            )
        logarithmic(axes)
        if chart.logarithmic_up:
            logarithmic(axes, "y")
        axes.set_xlabel(chart.across_title)
        axes.set_ylabel(chart.up_title)
        dress(axes)
    return picture
