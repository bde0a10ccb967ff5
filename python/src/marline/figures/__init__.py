"""Pictures, as SVG and PNG."""

from marline.figures.bars import Bar, BarChart, draw_bars
from marline.figures.curves import Curve, CurveChart, draw_curves
from marline.figures.lines import Line, LineChart, draw_lines
from marline.figures.picture import Picture
from marline.figures.scatter import Cloud, ScatterChart, draw_scatter
from marline.figures.stacks import Panel, StackChart, draw_stacks
from marline.figures.tree import draw_tree

__all__ = [
    "Bar",
    "BarChart",
    "Cloud",
    "Curve",
    "CurveChart",
    "Line",
    "LineChart",
    "Panel",
    "Picture",
    "ScatterChart",
    "StackChart",
    "draw_bars",
    "draw_curves",
    "draw_lines",
    "draw_scatter",
    "draw_stacks",
    "draw_tree",
]
