"""Trees as arrays, independent of the algorithm that grew them."""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.flows.classify.kernel import Places, by_forest, by_tree
from marline.trees import Leaf, Node


@dataclass(frozen=True, slots=True)
class Trees:
    """One tree or many; the nodes of a tree follow its root."""

    roots: Places
    feature: Places
    threshold: Numbers
    """Of each node: values above it go to the second child."""
    child: Places
    """The first of two children, which are neighbours; a leaf is its own."""
    shares: Numbers
    """Of the classes, at each node."""

    @classmethod
    def of(cls, node: Node) -> Self:
        """A tree of C4.5."""
        nodes: list[Node] = [node]
        child = []
        for at, one in enumerate(nodes):
            child.append(at if isinstance(one, Leaf) else len(nodes))
            nodes += [] if isinstance(one, Leaf) else [one.low, one.high]
        counts = np.array([one.counts for one in nodes], dtype=np.float64)
        return cls(
            np.zeros(1, dtype=np.int32),
            np.array([0 if isinstance(one, Leaf) else one.feature for one in nodes], dtype=np.int32),
            np.array([np.inf if isinstance(one, Leaf) else one.threshold for one in nodes]),
            np.array(child, dtype=np.int32),
            counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
        )

    @classmethod
    def of_tree(cls, estimator: Any) -> Self:  # noqa: ANN401 - a library without types
        """A tree of scikit-learn, which compares values in single precision."""
        return cls.of_forest([estimator])

    @classmethod
    def of_forest(cls, estimators: list[Any]) -> Self:
        """Trees of scikit-learn."""
        parts = [_breadth_first(estimator.tree_) for estimator in estimators]
        sizes = np.array([0, *(len(part.feature) for part in parts)], dtype=np.int64).cumsum()
        return cls(
            sizes[:-1].astype(np.int32),
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.threshold for part in parts]),
            np.concatenate([part.child + np.int32(first) for part, first in zip(parts, sizes, strict=False)]),
            np.concatenate([part.shares for part in parts]),
        )

    @property
    def depth(self) -> int:
        """The most questions from a root to a leaf."""
        level = self.roots
        asked = 0
        while (inner := level[self.child[level] != level]).size:
            level = np.concatenate([self.child[inner], self.child[inner] + 1])
            asked += 1
        return asked

    @property
    def _nodes(self) -> Places:
        return np.column_stack([self.feature, self.child])

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row."""
        if len(self.roots) > 1:
            best: Classes = self.probabilities(rows).argmax(axis=1)
            return best
        return self.leaves(rows, np.argmax(self.shares, axis=1).astype(np.int32)).astype(np.int64)

    def probabilities(self, rows: Numbers) -> Numbers:
        """The probability of each class (column) for each row."""
        if len(self.roots) > 1:
            # In single precision, as the trees of a forest have seen them.
            single = np.ascontiguousarray(rows, dtype=np.float32)
            return by_forest(single, self._nodes, self.threshold, self.roots, self.shares)
        return self.shares[self.leaves(rows, np.arange(len(self.child), dtype=np.int32))]

    def leaves(self, rows: Numbers, answer: Places) -> Places:
        """The answer of the leaf that each row reaches, by the only tree."""
        return by_tree(rows, self._nodes, self.threshold, answer, self.depth)


class _Grown(Protocol):
    """A tree of scikit-learn."""

    children_left: npt.NDArray[np.intp]
    children_right: npt.NDArray[np.intp]
    feature: npt.NDArray[np.intp]
    threshold: Numbers
    value: Numbers


def _breadth_first(tree: _Grown) -> Trees:
    """Its nodes with neighbouring children."""
    order = [0]
    child: list[int] = []
    for node in order:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        child.append(len(child) if left < 0 else len(order))
        order += [] if left < 0 else [left, right]
    places = np.array(order)
    inner = tree.children_left[places] >= 0
    shares = tree.value[places, 0]
    return Trees(
        np.zeros(1, dtype=np.int32),
        np.where(inner, tree.feature[places], 0).astype(np.int32),
        np.where(inner, tree.threshold[places], np.inf),
        np.array(child, dtype=np.int32),
        shares / shares.sum(axis=1, keepdims=True),
    )
