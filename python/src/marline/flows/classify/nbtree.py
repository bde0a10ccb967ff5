"""A tree whose leaves count intervals (R. Kohavi, "Scaling up the accuracy of naive-Bayes classifiers", 1996)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from marline.arrays import Classes, Numbers
from marline.evaluation import stratified
from marline.flows.classify.bayes import Bayes, right
from marline.flows.classify.trees import Trees
from marline.trees import Leaf, Node, Split, best_cut

FEWEST = 30
"""Rows of a node that may be split, and of which a fold can be counted."""

GAIN = 0.05
"""The share of the errors that a split must remove."""

FOLDS = 5

DEEPEST = 20


@dataclass(frozen=True, slots=True)
class NaiveBayesTree:
    """A tree, and the counts of its leaves."""

    tree: Trees
    leaf: "np.ndarray[tuple[int], np.dtype[np.int32]]"
    """Of each node: the place of its counts, 0 at those that are not leaves."""
    counts: tuple[Bayes, ...]

    @classmethod
    def fit(cls, rows: Numbers, classes: Classes, number: int) -> Self:
        """Learn from rows."""
        node = _grow(rows, classes, number, 0)
        tree = Trees.of(node)
        leaves = np.flatnonzero(tree.child == np.arange(len(tree.child)))
        leaf = np.zeros(len(tree.child), dtype=np.int32)
        leaf[leaves] = np.arange(len(leaves))
        at = tree.leaves(rows, leaf)
        counts = tuple(Bayes.fit(rows[at == one], classes[at == one], number) for one in range(len(leaves)))
        return cls(tree, leaf, counts)

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row."""
        best: Classes = self.probabilities(rows).argmax(axis=1)
        return best

    def probabilities(self, rows: Numbers) -> Numbers:
        """The probability of each class (column) for each row."""
        found = np.empty((len(rows), self.tree.shares.shape[1]))
        at = self.tree.leaves(rows, self.leaf)
        for place in np.unique(at):
            of = at == place
            found[of] = self.counts[place].probabilities(rows[of])
        return found


def _grow(rows: Numbers, classes: Classes, number: int, asked: int) -> Node:
    counts = tuple(int(count) for count in np.bincount(classes, minlength=number))
    if len(rows) < FEWEST or max(counts) == len(rows) or asked == DEEPEST:
        return Leaf(counts)
    wrong = len(rows) - _right(rows, classes, number)
    best: tuple[int, int, float] | None = None
    for feature in range(rows.shape[1]):
        cut = best_cut(rows[:, feature], classes, number, 2)
        if cut is None:
            continue
        low = rows[:, feature] <= cut.threshold
        errors = len(rows) - sum(_right(rows[side], classes[side], number) for side in (low, ~low))
        if best is None or errors < best[0]:
            best = errors, feature, cut.threshold
    if best is None or best[0] > (1 - GAIN) * wrong:
        return Leaf(counts)
    _, feature, threshold = best
    low = rows[:, feature] <= threshold
    return Split(
        counts,
        feature,
        threshold,
        _grow(rows[low], classes[low], number, asked + 1),
        _grow(rows[~low], classes[~low], number, asked + 1),
    )


def _right(rows: Numbers, classes: Classes, number: int) -> int:
    if len(rows) < FOLDS:
        return int(np.bincount(classes, minlength=number).max(initial=0))
    return right(rows, classes, number, stratified(classes, FOLDS, seed=1))
