"""A picture that is drawn once and written in several forms."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FuncFormatter, LogLocator

INK: Final = "#1c1f24"
QUIET: Final = "#5d6570"
RULE: Final = "#dfe2e6"
PANEL: Final = "#f4f5f3"
PAPER: Final = "#fdfdfb"
FIRST: Final = "#0a5c9e"
SECOND: Final = "#bd4f00"
THIRD: Final = "#1b7a4e"
FOURTH: Final = "#7d44b8"

DASHED: Final = (0, (4, 2))

LINES: Final = ((FIRST, "-"), (SECOND, "-"), (THIRD, "-"), (FOURTH, "-"), (QUIET, DASHED))
"""Colour and dashes of the lines of a picture, in their order."""

# Colours of the pages' style sheet, which follow the scheme of the reader's screen.
_VARIABLES = {
    INK: "--ink", QUIET: "--quiet", RULE: "--rule", PANEL: "--panel", PAPER: "--paper",
    FIRST: "--s0", SECOND: "--s1", THIRD: "--s2", FOURTH: "--s3",
}  # fmt: skip

_PNG_DPI = 144

_SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    # As in reports; a reader's first one that is there draws texts of SVG.
    "font.sans-serif": ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "DejaVu Sans"],
    "text.parse_math": False,
}


@contextmanager
def style() -> Iterator[None]:
    """The settings of pictures, regardless of the user's own settings."""
    with warnings.catch_warnings(), context(["default", {**_SETTINGS}]):
        # Names can be of any script; if the font lacks it, boxes are shown, in pixel formats only.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        yield


def dress(axes: Axes) -> None:
    """Give axes a grid, a legend and quiet titles."""
    axes.set_facecolor("none")
    axes.grid(color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8, length=0, which="both")
    for title in (axes.xaxis.label, axes.yaxis.label):
        title.set(color=QUIET, fontsize=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="best")


def logarithmic(axes: Axes, which: Literal["x", "y"] = "x") -> None:
    """Give an axis a logarithmic scale, with numbers written out: formulas are not drawn."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    # If no value can be shown on such a scale, it still needs limits.
    if which == "x":
        axes.set_xscale("log")
        if not np.isfinite(axes.dataLim.minposx):
            axes.set_xlim(1, 10)
    else:
        axes.set_yscale("log")
        if not np.isfinite(axes.dataLim.minposy):
            axes.set_ylim(1, 10)
    low, high = (axes.dataLim.minposx, axes.dataLim.x1) if which == "x" else (axes.dataLim.minposy, axes.dataLim.y1)
    if high < 10 * low:
        # Powers of ten alone would leave an axis with one number, or none.
        axis.set_major_locator(LogLocator(subs=range(1, 10)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


class Picture:
    """A drawn figure."""

    def __init__(self, name: str, width_in: float, height_in: float) -> None:
        self.name: Final = name
        """Its name, from which the names of its files are derived."""
        self.figure: Final = Figure(figsize=(width_in, height_in), facecolor=PAPER)

    def to_svg(self) -> str:
        """A file of its own."""
        out = io.StringIO()
        # With a fixed salt and without the date, equal pictures are equal files.
        with style(), mpl.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "marline"})
        return out.getvalue()

    def to_inline_svg(self) -> str:
        """An element of a page: its identifiers are unique to this picture, its colours are the page's."""
        svg = self.to_svg()
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
        svg = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{self.name}-", svg)
        for colour, variable in _VARIABLES.items():
            svg = svg.replace(colour, f"var({variable})")
        width = round(self.figure.get_figwidth() * 72)
        size = f'style="display:block;width:100%;min-width:{width}px;height:auto"'
        tag, rest = svg.split(">", 1)
        return re.sub(r'\b(width|height)="[^"]*"', "", tag).replace("<svg", f"<svg {size}", 1) + ">" + rest

    def to_png(self) -> bytes:
        """A file of pixels."""
        out = io.BytesIO()
        with style():
            self.figure.savefig(out, format="png", dpi=_PNG_DPI, metadata={"Software": "marline"})
        return out.getvalue()
