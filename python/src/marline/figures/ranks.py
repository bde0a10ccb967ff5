"""A picture of a ranked list: the quality and the size of each item."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import FIRST, INK, QUIET, RULE, SECOND, Picture, style


@dataclass(frozen=True, slots=True)
class RankChart:
    """Two series of percents over one rank."""

    quality: Sequence[float]
    share: Sequence[float]
    mean: float
    """Of the quality over all."""
    quality_title: str
    share_title: str
    rank_title: str


def draw_ranks(name: str, chart: RankChart) -> Picture:
    """Draw a chart."""
    ranks = range(1, len(chart.quality) + 1)
    with style():
        picture = Picture(name, 6.4, 3.6)
        left = picture.figure.add_axes((0.1, 0.14, 0.79, 0.82))
        right = left.twinx()
        left.plot(ranks, chart.quality, "o-", color=SECOND, linewidth=1.0, markersize=3)
        left.axhline(chart.mean, color=INK, linewidth=0.8)
        right.plot(ranks, chart.share, "-", color=FIRST, linewidth=1.5)
        left.set_ylim(0, 102)
        right.set_ylim(0, None)
        left.set_xlabel(chart.rank_title, color=QUIET, fontsize=8)
        left.set_ylabel(f"{chart.quality_title} (line: of all)", color=SECOND, fontsize=8)
        right.set_ylabel(chart.share_title, color=FIRST, fontsize=8)
        left.grid(color=RULE, linewidth=0.6)
        for axes in (left, right):
            axes.set_facecolor("none")
            axes.tick_params(colors=INK, labelsize=8, length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
    return picture
