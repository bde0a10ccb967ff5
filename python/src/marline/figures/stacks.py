"""A picture of shares: for each item a bar with parts of several kinds, in panels side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from marline.figures.picture import INK, LINES, QUIET, RULE, Picture, style


@dataclass(frozen=True, slots=True)
class Panel:
    """Bars under one title."""

    title: str
    shares: Sequence[Sequence[float]]
    """Percent of each kind, a row for each bar."""


@dataclass(frozen=True, slots=True)
class StackChart:
    """Bars of the same items in each panel."""

    labels: Sequence[str]
    """Of the bars."""
    kinds: Sequence[str]
    panels: Sequence[Panel]
    title: str
    """The quantity of which these are shares."""


def draw_stacks(name: str, chart: StackChart) -> Picture:
    """Draw a chart."""
    with style():
        picture = Picture(name, 4.0 + 3.0 * len(chart.panels), 1.15 + 0.24 * len(chart.labels))
        height = picture.figure.get_figheight()
        all_axes = picture.figure.subplots(
            1,
            len(chart.panels),
            sharey=True,
            squeeze=False,
            gridspec_kw={
                "left": 2.2 / picture.figure.get_figwidth(),
                "right": 1 - 0.15 / picture.figure.get_figwidth(),
                "wspace": 0.08,
            },
        )[0]
        picture.figure.subplots_adjust(bottom=0.42 / height, top=1 - 0.52 / height)
        places = list(range(len(chart.labels)))
        for axes, panel in zip(all_axes, chart.panels, strict=True):
            ends = [0.0] * len(places)
            for at, kind in enumerate(chart.kinds):
                widths = [row[at] for row in panel.shares]
                axes.barh(places, widths, left=ends, height=0.66, color=LINES[at % len(LINES)][0], label=kind)
                ends = [end + width for end, width in zip(ends, widths, strict=True)]
            axes.set_yticks(places, list(chart.labels))
            axes.set_ylim(len(places) - 0.4, -0.6)
            axes.set_xlim(0, 100)
            axes.set_xlabel(f"{chart.title}, {panel.title}" if panel.title else chart.title)
            axes.set_facecolor("none")
            axes.grid(axis="x", color=RULE, linewidth=0.6)
            axes.set_axisbelow(True)
            axes.tick_params(colors=INK, labelsize=8, length=0)
            axes.xaxis.label.set(color=QUIET, fontsize=8)
            for spine in axes.spines.values():
                spine.set_visible(False)
        handles, labels = all_axes[0].get_legend_handles_labels()
        picture.figure.legend(
            handles, labels, frameon=False, fontsize=8, labelcolor=INK, loc="upper center", ncols=len(labels)
        )
    return picture
