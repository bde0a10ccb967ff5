"""Classes by the intervals that the features of a row fall into, each taken as independent of the others.

The same as Weka's BayesNet with its defaults: K2 with one parent, the class, over discretised features, and half
a row added to each count.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from marline.arrays import Classes, Folds, Numbers
from marline.flows.classify.discrete import cuts, intervals

_ADDED = 0.5


@dataclass(frozen=True, slots=True)
class Bayes:
    """Counts of intervals by class."""

    thresholds: tuple[Numbers, ...]
    """Of each feature."""
    evidence: tuple[Numbers, ...]
    """Of each feature: the logarithm of the probability of an interval (row) in a class (column)."""
    prior: Numbers
    """The logarithm of the probability of each class."""

    @classmethod
    def fit(cls, rows: Numbers, classes: Classes, number: int) -> Self:
        """Learn from rows."""
        thresholds = tuple(cuts(column, classes, number) for column in rows.T)
        return cls.counted(thresholds, rows, classes, number)

    @classmethod
    def counted(cls, thresholds: tuple[Numbers, ...], rows: Numbers, classes: Classes, number: int) -> Self:
        """Count rows in intervals that are given."""
        evidence = []
        for column, ends in zip(rows.T, thresholds, strict=True):
            width = len(ends) + 1
            counts = np.bincount(intervals(column, ends) * number + classes, minlength=width * number)
            counted = counts.reshape(width, number) + _ADDED
            evidence.append(np.log(counted / counted.sum(axis=0)))
        prior = np.bincount(classes, minlength=number) + _ADDED
        return cls(thresholds, tuple(evidence), np.log(prior / prior.sum()))

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row."""
        best: Classes = self._scores(rows).argmax(axis=1)
        return best

    def probabilities(self, rows: Numbers) -> Numbers:
        """The probability of each class (column) for each row."""
        scores = self._scores(rows)
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Numbers = likely / likely.sum(axis=1, keepdims=True)
        return shares

    def _scores(self, rows: Numbers) -> Numbers:
        """The logarithms of the probabilities, except for a term that all classes of a row have in common."""
        scores = np.tile(self.prior, (len(rows), 1))
        for column, ends, evidence in zip(rows.T, self.thresholds, self.evidence, strict=True):
            scores += evidence[intervals(column, ends)]
        return scores


def right(rows: Numbers, classes: Classes, number: int, folds: Folds) -> int:
    """The number of rows that are classified correctly by counts without them; the intervals were learnt with them."""
    thresholds = tuple(cuts(column, classes, number) for column in rows.T)
    found = 0
    for fold in np.unique(folds):
        held = folds == fold
        learnt = Bayes.counted(thresholds, rows[~held], classes[~held], number)
        found += int((learnt.classify(rows[held]) == classes[held]).sum())
    return found
