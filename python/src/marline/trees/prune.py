"""Pruning a tree by the errors that it is expected to make in rows that it was not trained with."""

from statistics import NormalDist

import numpy as np

from marline.arrays import Classes, Numbers
from marline.trees.information import Counts
from marline.trees.nodes import Leaf, Node, Split

_SLACK = 0.1
"""Errors by which the smaller tree may be worse (C4.5)."""


def prune(node: Node, rows: Numbers, classes: Classes, confidence: float) -> Node:
    """A tree without the questions that are not expected to avoid errors.

    From the leaves to the root, a split becomes a leaf, or its larger branch takes its place, if that is not expected
    to make more errors, each at the upper end of its interval of ``confidence``.
    """
    return _prune(_collapse(node), rows, classes, confidence)


def extra_errors(rows: int, errors: int, confidence: float) -> float:
    """Errors to expect beyond ``errors`` among ``rows``, at the upper end of an interval of a binomial share.

    The exact one for no errors, the normal approximation for one and more, and a line between them below one (C4.5).
    """
    if rows == 0:
        return 0.0
    if errors == 0:
        return float(rows * (1 - confidence ** (1 / rows)))
    if errors + 0.5 >= rows:
        return float(max(rows - errors, 0))
    z = NormalDist().inv_cdf(1 - confidence)
    share = (errors + 0.5) / rows
    spread = z * float(np.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows)))
    upper = (share + z * z / (2 * rows) + spread) / (1 + z * z / rows)
    return upper * rows - errors


def _collapse(node: Node) -> Node:
    """The tree without splits that avoid no error among the rows it grew from."""
    if isinstance(node, Leaf):
        return node
    if _training_errors(node) >= _wrong(node.counts):
        return Leaf(node.counts)
    return _with_branches(node, node.counts, _collapse(node.low), _collapse(node.high))


def _prune(node: Node, rows: Numbers, classes: Classes, confidence: float) -> Node:
    if isinstance(node, Leaf):
        return node
    low = rows[:, node.feature] <= node.threshold
    branches = (
        _prune(node.low, rows[low], classes[low], confidence),
        _prune(node.high, rows[~low], classes[~low], confidence),
    )
    kept = _with_branches(node, node.counts, *branches)
    larger = kept.low if low.sum() >= len(low) / 2 else kept.high
    raised = _recount(larger, rows, classes, len(node.counts))
    as_leaf, as_split, as_raised = (_expected(tree, confidence) for tree in (Leaf(node.counts), kept, raised))
    if as_leaf <= as_split + _SLACK and as_leaf <= as_raised + _SLACK:
        return Leaf(node.counts)
    if as_raised <= as_split + _SLACK:
        return _prune(raised, rows, classes, confidence)
    return kept


def _recount(node: Node, rows: Numbers, classes: Classes, number: int) -> Node:
    """The tree with the counts of other rows; a side that none of them takes is dropped."""
    counts = tuple(int(count) for count in np.bincount(classes, minlength=number))
    if isinstance(node, Leaf):
        return Leaf(counts)
    low = rows[:, node.feature] <= node.threshold
    if low.all():
        return _recount(node.low, rows, classes, number)
    if not low.any():
        return _recount(node.high, rows, classes, number)
    return _with_branches(
        node,
        counts,
        _recount(node.low, rows[low], classes[low], number),
        _recount(node.high, rows[~low], classes[~low], number),
    )


def _with_branches(node: Split, counts: Counts, low: Node, high: Node) -> Split:
    return Split(counts, node.feature, node.threshold, low, high)


def _wrong(counts: Counts) -> int:
    return sum(counts) - max(counts)


def _training_errors(node: Node) -> int:
    return _wrong(node.counts) if isinstance(node, Leaf) else _training_errors(node.low) + _training_errors(node.high)


def _expected(node: Node, confidence: float) -> float:
    """Errors that a tree is expected to make among as many rows."""
    if isinstance(node, Leaf):
        wrong = _wrong(node.counts)
        return wrong + extra_errors(sum(node.counts), wrong, confidence)
    return _expected(node.low, confidence) + _expected(node.high, confidence)
