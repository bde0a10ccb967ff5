"""A picture of a decision tree, from the root at the left to the classes at the right."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from marline.figures.picture import FIRST, INK, PANEL, PAPER, QUIET, Picture, style
from marline.trees import Leaf, Node, Shown, leaves, majority

LEVELS = 4
"""The deepest level of questions that is drawn: deeper ones are illegible, and are in the text."""

# In inches: a column of the tree, a row of it, and a box.
_COLUMN, _ROW, _WIDTH, _HEIGHT = 2.2, 0.56, 1.4, 0.46
_MARGIN = 0.15


@dataclass(frozen=True, slots=True)
class _Placed:
    node: Node
    column: int
    row: float
    branches: tuple["_Placed", ...]


@dataclass(frozen=True, slots=True)
class _Look:
    face: str
    edge: str
    dashed: bool = False


def draw_tree(name: str, tree: Node, features: Sequence[Shown], classes: Sequence[str]) -> Picture:
    """The tree, down to :data:`LEVELS` questions; a dashed box summarizes the subtree below it."""
    rows, root = _place(tree, 0, 0)
    columns = _columns(root)
    width = (columns - 1) * _COLUMN + _WIDTH + 2 * _MARGIN
    height = rows * _ROW + 2 * _MARGIN
    with style():
        picture = Picture(name, width, height)
        axes = picture.figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-_MARGIN, width - _MARGIN)
        axes.set_ylim(height - _MARGIN, -_MARGIN)
        axes.axis("off")
        _draw(axes, root, features, classes)
    return picture


def _place(node: Node, column: int, row: float) -> tuple[int, _Placed]:
    """The rows of the drawing that a tree occupies, and its position if the first of them is ``row``."""
    if isinstance(node, Leaf) or column == LEVELS:
        return 1, _Placed(node, column, row, ())
    above, low = _place(node.low, column + 1, row)
    below, high = _place(node.high, column + 1, row + above)
    return above + below, _Placed(node, column, (low.row + high.row) / 2, (low, high))


def _columns(placed: _Placed) -> int:
    return 1 + max((_columns(branch) for branch in placed.branches), default=0)


def _draw(axes: Axes, placed: _Placed, features: Sequence[Shown], classes: Sequence[str]) -> None:
    left, middle = placed.column * _COLUMN, (placed.row + 0.5) * _ROW
    node = placed.node
    if placed.branches and not isinstance(node, Leaf):
        feature = features[node.feature]
        for sign, branch in zip("≤>", placed.branches, strict=True):
            end = (branch.row + 0.5) * _ROW
            begin, bend, stop = left + _WIDTH, left + _WIDTH + 0.1, branch.column * _COLUMN
            axes.plot([begin, bend, bend, stop], [middle, middle, end, end], color=QUIET, linewidth=0.8, zorder=1)
            text = f"{sign} {feature.show(node.threshold)}"
            axes.text(bend + 0.04, end - 0.05, text, color=QUIET, fontsize=7, va="bottom")
            _draw(axes, branch, features, classes)
        lines = _wrapped(feature.label)
        _box(axes, left, middle, _Look(PANEL, QUIET))
        _lines(axes, left, middle, [*lines, f"{sum(node.counts)} rows, {node.gain_bits:.2f} bit"])
        return
    at = majority(node.counts)
    rows = sum(node.counts)
    share = 100 * node.counts[at] / rows if rows else 0.0
    summary = f"{rows} rows" if share == 100 else f"{rows} rows, {min(share, 99.9):.3g} %"
    hidden = leaves(node) - 1
    _box(axes, left, middle, _Look(PAPER, FIRST, dashed=hidden > 0))
    more = [f"{hidden} more question{'s' if hidden > 1 else ''}"] if hidden else []
    _lines(axes, left, middle, [classes[at], summary, *more])


def _box(axes: Axes, left: float, middle: float, look: _Look) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left, middle - _HEIGHT / 2),
            _WIDTH,
            _HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=look.face,
            edgecolor=look.edge,
            linewidth=1.0,
            linestyle=(0, (3, 2)) if look.dashed else "-",
            zorder=2,
        )
    )


def _lines(axes: Axes, left: float, middle: float, lines: Sequence[str]) -> None:
    """Lines in a box: those of the name in bold, the last ones small."""
    step = 0.135
    top = middle - step * (len(lines) - 1) / 2
    for at, line in enumerate(lines):
        first = at == 0 or (len(lines) > 2 and not line[0].isdigit())
        axes.text(
            left + _WIDTH / 2,
            top + at * step,
            line,
            color=INK if first else QUIET,
            fontsize=7.5 if first else 6.5,
            fontweight="bold" if first else "normal",
            ha="center",
            va="center",
            zorder=3,
        )


def _wrapped(label: str) -> list[str]:
    """A name in two lines if it is too long for one."""
    if len(label) <= 22:
        return [label]
    cut = label.rfind(" ", 0, len(label) // 2 + 4)
    return [label[:cut], label[cut + 1 :]] if cut > 0 else [label]
