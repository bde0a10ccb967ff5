"""The nodes of a tree."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.trees.information import Counts, entropy


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf, which decides a class."""

    counts: Counts


@dataclass(frozen=True, slots=True)
class Split:
    """A question: is a feature at most a threshold?"""

    counts: Counts
    feature: int
    """The column."""
    threshold: float
    low: "Node"
    """For rows whose value is at most the threshold."""
    high: "Node"

    @property
    def gain_bits(self) -> float:
        """The information gain of the question."""
        rows = sum(self.counts)
        rest = sum(sum(side.counts) * entropy(side.counts) for side in (self.low, self.high))
        return entropy(self.counts) - rest / rows if rows else 0.0


Node: TypeAlias = Leaf | Split


def majority(counts: Counts) -> int:
    """The class of most rows; the lowest of several."""
    return max(range(len(counts)), key=lambda at: (counts[at], -at))


def leaves(node: Node) -> int:
    """The number of leaves of a tree."""
    return 1 if isinstance(node, Leaf) else leaves(node.low) + leaves(node.high)


def depth(node: Node) -> int:
    """The most questions from the root to a leaf."""
    return 0 if isinstance(node, Leaf) else 1 + max(depth(node.low), depth(node.high))


def classify(node: Node, rows: Numbers) -> Classes:
    """The class of each row."""
    classes = np.empty(len(rows), dtype=np.int64)
    _classify(node, rows, np.arange(len(rows)), classes)
    return classes


def _classify(node: Node, rows: Numbers, which: npt.NDArray[np.intp], classes: Classes) -> None:
    if isinstance(node, Leaf):
        classes[which] = majority(node.counts)
        return
    low = rows[which, node.feature] <= node.threshold
    _classify(node.low, rows, which[low], classes)
    _classify(node.high, rows, which[~low], classes)
