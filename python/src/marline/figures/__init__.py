"""Pictures, as SVG and PNG."""

from marline.figures.bars import Bar, BarChart, draw_bars
from marline.figures.curves import Curve, CurveChart, draw_curves
from marline.figures.picture import Picture
from marline.figures.tree import draw_tree

__all__ = ["Bar", "BarChart", "Curve", "CurveChart", "Picture", "draw_bars", "draw_curves", "draw_tree"]
