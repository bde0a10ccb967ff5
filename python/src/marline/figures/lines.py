"""A picture of lines over a logarithmic axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import INK, LINES, Picture, dress, logarithmic, style


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
        # Numbers beside the axis are of any width.
        picture.figure.set_layout_engine("constrained")
        axes = picture.figure.subplots()
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
        # Lines may cover the whole plot, so that the legend is beside it.
        axes.legend(
            frameon=False,
            fontsize=8,
            labelcolor=INK,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=len(chart.lines),
        )
    return picture
