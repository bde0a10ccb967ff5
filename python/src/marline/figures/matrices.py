"""A picture of tables of shares, each cell as dark as its share is large."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba

from marline.arrays import Numbers
from marline.figures.picture import FIRST, INK, PAPER, QUIET, Picture, style

_DARK = 55.0
"""Percent from which a cell is so dark that its number has the colour of the background."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Shares in percent; NaN where a row is empty."""

    title: str
    cells: Numbers


@dataclass(frozen=True, slots=True)
class MatrixChart:
    """Tables of the same rows and columns."""

    matrices: Sequence[Matrix]
    names: Sequence[str]
    """Of rows and of columns."""
    across_title: str
    up_title: str


def draw_matrices(name: str, chart: MatrixChart) -> Picture:
    """Draw a chart."""
    side = 0.62 * len(chart.names)
    width = 0.7 + len(chart.matrices) * (side + 0.35)
    with style():
        picture = Picture(name, width, side + 1.0)
        # Transparent at 0, so that it fits pages of any colour.
        shades = LinearSegmentedColormap.from_list("shades", [to_rgba(FIRST, 0.0), to_rgba(FIRST, 1.0)])
        for place, matrix in enumerate(chart.matrices):
            left = 0.7 + place * (side + 0.35)
            axes = picture.figure.add_axes((left / width, 0.5 / (side + 1.0), side / width, side / (side + 1.0)))
            axes.set_facecolor("none")
            count = len(chart.names)
            axes.pcolormesh(np.nan_to_num(matrix.cells), cmap=shades, vmin=0, vmax=100, edgecolors=PAPER, linewidth=1)
            for (row, column), share in np.ndenumerate(matrix.cells):
                text = "-" if np.isnan(share) else f"{share:.1f}"
                colour = PAPER if share >= _DARK else INK
                axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7.5, color=colour)
            axes.set_xticks(np.arange(count) + 0.5, list(chart.names))
            axes.set_yticks(np.arange(count) + 0.5, list(chart.names) if place == 0 else [""] * count)
            axes.set_ylim(count, 0)
            axes.tick_params(colors=INK, labelsize=8, length=0)
            axes.set_title(matrix.title, fontsize=8.5, color=INK)
            axes.set_xlabel(chart.across_title, color=QUIET, fontsize=8)
            if place == 0:
                axes.set_ylabel(chart.up_title, color=QUIET, fontsize=8)
            for spine in axes.spines.values():
                spine.set_visible(False)
    return picture
