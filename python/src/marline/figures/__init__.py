"""Pictures, as SVG and PNG."""

from marline.figures.bars import Bar, BarChart, draw_bars
from marline.figures.curves import Curve, CurveChart, draw_curves
from marline.figures.intervals import Interval, IntervalChart, draw_intervals
from marline.figures.lines import Line, LineChart, draw_lines
from marline.figures.matrices import Matrix, MatrixChart, draw_matrices
from marline.figures.picture import Picture
from marline.figures.ranks import RankChart, draw_ranks
from marline.figures.scatter import Cloud, ScatterChart, draw_scatter
from marline.figures.stacks import Panel, StackChart, draw_stacks
from marline.figures.tree import draw_tree

__all__ = [
    "Bar",
    "BarChart",
    "Cloud",
    "Curve",
    "CurveChart",
    "Interval",
    "IntervalChart",
    "Line",
    "LineChart",
    "Matrix",
    "MatrixChart",
    "Panel",
    "Picture",
    "RankChart",
    "ScatterChart",
    "StackChart",
    "draw_bars",
    "draw_curves",
    "draw_intervals",
    "draw_lines",
    "draw_matrices",
    "draw_ranks",
    "draw_scatter",
    "draw_stacks",
    "draw_tree",
]
