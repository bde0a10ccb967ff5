"""How well a learner classifies rows that it has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Folds, Numbers
from marline.trees import Node, classify


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows of each class, by the class that they were taken for."""

    counts: npt.NDArray[np.int64]
    """Row: the class; column: what it was taken for."""

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        """Rows that were taken for what they are."""
        return int(np.trace(self.counts))

    @property
    def accuracy(self) -> float:
        """The share of rows that were taken for what they are."""
        return self.right / self.rows

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


def by_group(groups: Sequence[str]) -> Folds:
    """The fold of each row: one for each group."""
    return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)


def cross_validate(
    rows: Numbers,
    classes: Classes,
    number: int,
    folds: Folds,
    learn: Callable[[Numbers, Classes], Node],
) -> Confusion:
    """Classify the rows of each fold by what was learnt from all others."""
    counts = np.zeros((number, number), dtype=np.int64)
    for fold in np.unique(folds):
        held = folds == fold
        taken = classify(learn(rows[~held], classes[~held]), rows[held])
        np.add.at(counts, (classes[held], taken), 1)
    return Confusion(counts)
