"""The accuracy of a learner on rows that it was not trained with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Folds, Numbers
from marline.trees import Node, classify

Said = TypeVar("Said", Classes, Numbers)
"""Classes, or their probabilities."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows of each class, by predicted class (a confusion matrix)."""

    counts: npt.NDArray[np.int64]
    """Row: the actual class; column: the predicted one."""

    @classmethod
    def of(cls, classes: Classes, taken: Classes, number: int) -> Self:
        """Count rows by actual and predicted class."""
        return cls(np.bincount(classes * number + taken, minlength=number * number).reshape(number, number))

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        """Rows that were classified correctly."""
        return int(np.trace(self.counts))

    @property
    def accuracy(self) -> float:
        """The share of rows that were classified correctly."""
        return self.right / self.rows

    @property
    def kappa(self) -> float:
        """Cohen's kappa: the accuracy beyond chance agreement, as a share of the possible improvement over it."""
        chance = float(self.counts.sum(axis=0) @ self.counts.sum(axis=1)) / self.rows**2
        return (self.accuracy - chance) / (1 - chance) if chance < 1 else 1.0

    @property
    def recalls(self) -> Numbers:
        """The recall of each class; NaN where it has no rows."""
        return _shares(np.diag(self.counts), self.counts.sum(axis=1))

    @property
    def precisions(self) -> Numbers:
        """The precision of each class; NaN where it was never predicted."""
        return _shares(np.diag(self.counts), self.counts.sum(axis=0))

    @property
    def f_measure(self) -> float:
        """The harmonic mean of recall and precision, averaged over the classes that have rows; 0 if never found."""
        of = self.counts.sum(axis=1) > 0
        recall, precision = self.recalls[of], np.nan_to_num(self.precisions[of])
        total = recall + precision
        return float(np.where(total > 0, 2 * recall * precision / np.where(total > 0, total, 1), 0).mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy (Wilson)."""
        z = NormalDist().inv_cdf(0.975)
        n, p = self.rows, self.accuracy
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
        return max(0.0, middle - reach), min(1.0, middle + reach)


def stratified(classes: Classes, folds: int, seed: int) -> Folds:
    """The fold of each row: each class is dealt out evenly, at random.

    A class with fewer rows than folds is missing from some. The deal goes on from class to class, so that the folds
    differ by one row at most.
    """
    rng = np.random.default_rng(seed)
    dealt = np.empty(len(classes), dtype=np.int64)
    order = np.concatenate([rng.permutation(np.flatnonzero(classes == of)) for of in np.unique(classes)])
    dealt[order] = np.arange(len(order)) % folds
    return dealt


def by_group(groups: Sequence[str] | npt.NDArray[np.integer]) -> Folds:
    """The fold of each row: one for each group."""
    return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)


def held_out(
    rows: Numbers,
    classes: Classes,
    folds: Folds,
    learn: Callable[[Numbers, Classes], Callable[[Numbers], Said]],
    step: Callable[[int], None] = lambda _: None,
) -> Said:
    """Classes or probabilities of the rows of each fold, by a model of all others; ``step`` is called after each."""
    parts, places = [], []
    for fold in np.unique(folds):
        held = folds == fold
        parts.append(learn(rows[~held], classes[~held])(rows[held]))
        places.append(np.flatnonzero(held))
        step(int(fold))
    said: Said = np.concatenate(parts)[np.argsort(np.concatenate(places))]
    return said


def cross_validate(
    rows: Numbers,
    classes: Classes,
    number: int,
    folds: Folds,
    learn: Callable[[Numbers, Classes], Node],
) -> Confusion:
    """Classify the rows of each fold by a tree that was trained on all others."""
    taken = held_out(rows, classes, folds, lambda some, of: partial(classify, learn(some, of)))
    return Confusion.of(classes, taken, number)


def _shares(parts: npt.NDArray[np.int64], wholes: npt.NDArray[np.int64]) -> Numbers:
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes > 0)
    return shares
