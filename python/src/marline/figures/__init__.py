"""Pictures, as SVG and PNG."""

from marline.figures.bars import Bar, BarChart, draw_bars
from marline.figures.picture import Picture
from marline.figures.tree import draw_tree

__all__ = ["Bar", "BarChart", "Picture", "draw_bars", "draw_tree"]
