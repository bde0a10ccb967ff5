"""A picture of distributions: the share of values up to each value."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marline.arrays import Numbers
from marline.figures.picture import DASHED, LINES, Picture, dress, logarithmic, style

_POINTS = 500
"""The most points of a curve: more make no visible difference, and a page with a million does not open."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One distribution."""

    label: str
    values: Numbers
    """Sorted."""
    counts: Numbers | None = None
    """The number of occurrences of each value; one by default."""

    @property
    def of(self) -> int:
        """All values."""
        return len(self.values) if self.counts is None else int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class CurveChart:
    """Distributions over one axis."""

    curves: Sequence[Curve]
    title: str
    """The quantity of the values, with its unit."""
    logarithmic: bool = False
    limits: tuple[float, float] | None = None
    """Ends of the axis; values beyond them are not shown."""
    paired: bool = False
    """Each two curves have one colour, the second of them dashes."""


def draw_curves(name: str, chart: CurveChart) -> Picture:
    """Draw a chart; a curve without values is omitted, as its label states."""
    with style():
        picture = Picture(name, 6.4, 3.6)
        axes = picture.figure.add_axes((0.1, 0.14, 0.87, 0.82))
        for at, curve in enumerate(chart.curves):
            colour, dashes = LINES[(at // 2 if chart.paired else at) % len(LINES)]
            if chart.paired:
                dashes = DASHED if at % 2 else "-"
            shares, values = _thinned(curve)
            label = f"{curve.label} ({curve.of:,})"
            axes.step(values, shares, where="post", color=colour, linestyle=dashes, linewidth=1.5, label=label)
        if chart.logarithmic:
            logarithmic(axes)
        if chart.limits is not None:
            axes.set_xlim(*chart.limits)
        axes.set_ylim(0, 1)
        axes.set_ylabel("share at most so large")
        axes.set_xlabel(chart.title)
        dress(axes)
    return picture


def _thinned(curve: Curve) -> tuple[Numbers, Numbers]:
    """Shares and values of the points that are drawn."""
    values = curve.values
    if not len(values):
        return np.zeros(0), np.zeros(0)
    at = np.unique(np.linspace(0, len(values) - 1, _POINTS).astype(np.int64))
    up_to = at + 1.0 if curve.counts is None else np.cumsum(curve.counts)[at]
    return up_to / curve.of, values[at]
