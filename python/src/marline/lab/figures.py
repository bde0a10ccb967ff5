"""Figures for papers: vector files of the width of a column, with the font size of the caption."""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.style import context

from marline.errors import OptionError, OutputError
from marline.lab.quantity import Quantity

_COLOURS: Final = ("#0a5c9e", "#bd4f00", "#1b7a4e", "#7d44b8", "#8a6d00", "#4b5563")
_DASHES: Final = ("-", (0, (4, 1.5)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (8, 2)), (0, (2, 1)))
_MARKS: Final = ("o", "s", "^", "D", "x", "+")
_HATCHES: Final = ("", "////", "....", "xxxx", "\\\\\\\\", "----")
_RULE: Final = "#dfe2e6"
_EVENT: Final = "#c1121f"
_LARGEST_WIDTH_IN: Final = 30.0
_FORMATS: Final = ("pdf", "svg", "eps", "pgf", "png")
_MARGIN: Final = 0.03
"""Margin around values, as a share of their range."""
_BYTES_IN_KB: Final = 1000.0

_KINDS: Final = ("window_bytes", "in_flight_bytes", "rtt_s", "queue_bytes", "goodput_mbps", "rate_mbps")
"""Time series that are drawn, in this order, by the first word of their names."""


@dataclass(frozen=True, slots=True)
class Paper:
    """The measures of a figure.

    Columns of usual classes: 3.33 in (ACM ``sigconf``), 3.5 in (IEEE), 7.0 in (both columns), 4.8 in (LNCS).
    """

    width_in: float = 3.33
    height_in: float | None = None
    """By default 0.62 of the width, and more for figures with many rows."""
    font_pt: float = 8.0
    font: str = "DejaVu Sans"
    """A family that matplotlib finds, such as ``Linux Libertine``."""

    def __post_init__(self) -> None:
        """Raise :class:`OptionError` for sizes that no paper has."""
        if not 1 <= self.width_in <= _LARGEST_WIDTH_IN:
            raise OptionError(f"width_in must be from 1 to {_LARGEST_WIDTH_IN:g} inches, and is {self.width_in}")
        if not 3 <= self.font_pt <= 40:
            raise OptionError(f"font_pt must be from 3 to 40 points, and is {self.font_pt}")

    @contextmanager
    def style(self) -> Iterator[None]:
        """The settings of matplotlib, regardless of the user's own. Text stays text: fonts are embedded as TrueType."""
        settings: dict[str, Any] = {
            "font.family": self.font,
            "font.size": self.font_pt,
            "axes.titlesize": self.font_pt,
            "axes.labelsize": self.font_pt,
            "xtick.labelsize": self.font_pt - 1,
            "ytick.labelsize": self.font_pt - 1,
            "legend.fontsize": self.font_pt - 1,
            "lines.linewidth": 1.1,
            "axes.linewidth": 0.6,
            "hatch.linewidth": 0.5,
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
            "svg.fonttype": "none",
            "text.parse_math": False,
        }
        with context(["default", settings]):
            yield

    def figure(self, height_in: float | None = None) -> Figure:
        """An empty figure; ``height_in`` is the height where the paper has none."""
        height = self.height_in or height_in or 0.62 * self.width_in
        return Figure(figsize=(self.width_in, height), layout="constrained")


class PaperFigure:
    """A figure, to be saved, or to be changed by matplotlib before that."""

    def __init__(self, figure: Figure, paper: Paper) -> None:
        self.figure: Final = figure
        self._paper = paper

    def save(self, path: str | Path) -> Path:
        """Write it as ``.pdf``, ``.svg``, ``.eps``, ``.pgf`` or ``.png``. Equal results are equal files.

        Raises :class:`OptionError` for other suffixes, and :class:`OutputError`.
        """
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in _FORMATS:
            raise OptionError(f"{path}: the suffix must be one of {', '.join(_FORMATS)}")
        out = io.BytesIO()
        dated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        with self._paper.style(), mpl.rc_context({"svg.hashsalt": path.stem}):
            self.figure.savefig(out, format=kind, dpi=300, metadata=dated.get(kind))
        try:
            path.write_bytes(out.getvalue())
        except OSError as error:
            raise OutputError(path, error.strerror or str(error)) from error
        return path


@dataclass(frozen=True, slots=True)
class Improvement:
    """An improvement in percent, its interval, and the published one."""

    label: str
    percent: float
    interval: Sequence[float] | None
    published: float | None


def boxes(
    metric: str,
    points: Sequence[str],
    variants: Sequence[str],
    samples: Sequence[Sequence[Sequence[float]]],
    paper: Paper,
) -> PaperFigure:
    """Boxes in groups: ``samples`` of each point, of each variant."""
    with paper.style():
        figure = paper.figure()
        axes = figure.add_subplot()
        width = 0.84 / len(variants)
        for at, variants_there in enumerate(samples):
            for number, values in enumerate(variants_there):
                if len(values):
                    _box(axes, at + (number - (len(variants) - 1) / 2) * width, 0.7 * width, number, values)
        axes.set_xticks(range(len(points)), points)
        axes.set_xlim(-0.5, len(points) - 0.5)
        axes.set_ylabel(Quantity.of(metric).title)
        axes.set_ylim(bottom=0)
        _dress(axes, "y")
        handles = [
            Patch(facecolor="white", edgecolor=_colour(number), hatch=_HATCHES[number % len(_HATCHES)], label=variant)
            for number, variant in enumerate(variants)
        ]
        _legend(figure, handles)
    return PaperFigure(figure, paper)


def _box(axes: Axes, middle: float, width: float, look: int, values: Sequence[float]) -> None:
    p5, p25, median, p75, p95 = np.percentile(np.asarray(values, dtype=float), [5, 25, 50, 75, 95])
    box = {"whislo": p5, "q1": p25, "med": median, "q3": p75, "whishi": p95}
    colour = _colour(look)
    axes.bxp(
        [box],
        positions=[middle],
        widths=width,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": "white", "edgecolor": colour, "hatch": _HATCHES[look % len(_HATCHES)], "linewidth": 0.8},
        whiskerprops={"color": colour, "linewidth": 0.8},
        capprops={"color": colour, "linewidth": 0.8},
        medianprops={"color": "black", "linewidth": 1.2},
    )


def distribution(metric: str, variants: Sequence[str], samples: Sequence[Sequence[float]], paper: Paper) -> PaperFigure:
    """Empirical distribution functions."""
    with paper.style():
        figure = paper.figure()
        axes = figure.add_subplot()
        values = [value for one in samples for value in one]
        for number, (variant, one) in enumerate(zip(variants, samples, strict=True)):
            if len(one):
                up = np.sort(np.asarray(one, dtype=float))
                shares = np.arange(1, len(up) + 1) / len(up)
                line: dict[str, Any] = {
                    "color": _colour(number),
                    "linestyle": _DASHES[number % len(_DASHES)],
                    "label": variant,
                }
                axes.step(np.concatenate([up[:1], up]), np.concatenate([[0.0], shares]), where="post", **line)
        if values:
            low, high = min(values), max(values)
            margin = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
            axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(0, 1)
        axes.set_xlabel(Quantity.of(metric).title)
        axes.set_ylabel("share of runs")
        _dress(axes, "both")
        _legend(figure, axes.get_legend_handles_labels()[0])
    return PaperFigure(figure, paper)


def improvements(rows: Sequence[Improvement], paper: Paper) -> PaperFigure:
    """Values with intervals in rows, beside published values."""
    # Names take less than half of the width: a letter is about half as wide as it is high.
    letters = int(0.45 * paper.width_in * 72 / (0.55 * paper.font_pt))
    labels = [textwrap.fill(row.label, max(letters, 8)) for row in rows]
    lines = sum(label.count("\n") + 1.6 for label in labels)
    with paper.style():
        figure = paper.figure(0.8 + 1.15 * paper.font_pt / 72 * lines)
        axes = figure.add_subplot()
        for at, row in enumerate(rows):
            if row.interval is not None:
                axes.hlines(at, row.interval[0], row.interval[1], color=_COLOURS[0], linewidth=1.4)
            axes.plot([row.percent], [at], "o", color=_COLOURS[0], markersize=3.5)
            if row.published is not None:
                axes.plot([row.published], [at], "D", color="black", markerfacecolor="white", markersize=4)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("improvement (%)")
        _dress(axes, "x")
        handles = [Line2D([], [], color=_COLOURS[0], marker="o", markersize=3.5, label="here, 95 % interval")]
        if any(row.published is not None for row in rows):
            look: dict[str, Any] = {
                "color": "black",
                "marker": "D",
                "markerfacecolor": "white",
                "linestyle": "none",
                "markersize": 4,
            }
            handles.append(Line2D([], [], label="published", **look))
        _legend(figure, handles)
    return PaperFigure(figure, paper)


def correlation(
    x: str, y: str, variants: Sequence[str], clouds: Sequence[Sequence[tuple[float, float]]], paper: Paper
) -> PaperFigure:
    """Scatter plots: pairs of values for each variant."""
    with paper.style():
        figure = paper.figure()
        axes = figure.add_subplot()
        for number, (variant, cloud) in enumerate(zip(variants, clouds, strict=True)):
            mark: dict[str, Any] = {
                "marker": _MARKS[number % len(_MARKS)],
                "color": _colour(number),
                "linestyle": "none",
            }
            xs, ys = [pair[0] for pair in cloud], [pair[1] for pair in cloud]
            axes.plot(xs, ys, label=variant, markersize=3, markerfacecolor="none", **mark)
        axes.set_xlabel(Quantity.of(x).title)
        axes.set_ylabel(Quantity.of(y).title)
        _dress(axes, "both")
        _legend(figure, axes.get_legend_handles_labels()[0])
    return PaperFigure(figure, paper)


def over_time(
    series: Mapping[str, Sequence[Sequence[float]]], moments: Mapping[str, Sequence[float]], paper: Paper
) -> PaperFigure:
    """Time series in panels above each other; events are lines across all of them."""
    kinds: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for name, points in series.items():
        kind = name.split(" ")[0]
        if kind in kinds and len(points):
            kinds[kind].append(name)
    shown = {kind: names for kind, names in kinds.items() if names}
    with paper.style():
        figure = paper.figure(0.3 + 0.3 * paper.width_in * len(shown))
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (kind, names) in zip(panels, shown.items(), strict=True):
            for number, name in enumerate(names):
                at, values = np.asarray(series[name], dtype=float).T
                values = values / _BYTES_IN_KB if kind.endswith("_bytes") else values
                label = name.removeprefix(kind).strip() or kind
                line: dict[str, Any] = {
                    "color": _colour(number),
                    "linestyle": _DASHES[number % len(_DASHES)],
                    "label": label,
                }
                axes.step(at, values, where="post", linewidth=0.9, **line)
            for times in moments.values():
                for time_s in times:
                    axes.axvline(time_s, color=_EVENT, linewidth=0.4, alpha=0.5)
            axes.set_ylabel(Quantity.of(kind.replace("_bytes", "_kb")).title)
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
            _dress(axes, "both")
            if len(names) > 1:
                axes.legend(frameon=False)
        panels[-1].set_xlabel("time (s)")
    return PaperFigure(figure, paper)


def _colour(look: int) -> str:
    return _COLOURS[look % len(_COLOURS)]


def _dress(axes: Axes, grid: Literal["x", "y", "both"]) -> None:
    axes.grid(axis=grid, color=_RULE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _legend(figure: Figure, handles: Sequence[Any]) -> None:
    if handles:
        figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 3), frameon=False)
