"""Decision trees over numbers, as C4.5 grows and prunes them.

J. R. Quinlan, "C4.5: Programs for Machine Learning", 1993.
"""

from marline.trees.grow import Criterion, Cut, Settings, best_cut, fit
from marline.trees.information import Counts, entropy
from marline.trees.nodes import Leaf, Node, Split, classify, depth, leaves, majority
from marline.trees.prune import extra_errors, prune
from marline.trees.text import Shown, to_text

__all__ = [
    "Counts",
    "Criterion",
    "Cut",
    "Leaf",
    "Node",
    "Settings",
    "Shown",
    "Split",
    "best_cut",
    "classify",
    "depth",
    "entropy",
    "extra_errors",
    "fit",
    "leaves",
    "majority",
    "prune",
    "to_text",
]
