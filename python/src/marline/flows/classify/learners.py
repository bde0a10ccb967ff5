"""The algorithms of the study, by name."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import numpy as np

from marline.arrays import Classes, Numbers
from marline.flows.classify.bayes import Bayes
from marline.flows.classify.nbtree import NaiveBayesTree
from marline.flows.classify.trees import Trees
from marline.trees import Settings, fit

FOREST_TREES = 100


class Learnt(Protocol):
    """A trained model."""

    def classify(self, rows: Numbers) -> Classes:
        """The class of each row."""
        ...

    def probabilities(self, rows: Numbers) -> Numbers:
        """The probability of each class (column) for each row."""
        ...


def prepare(algorithms: Collection[str]) -> None:
    """Load the additional libraries of some algorithms before the work begins."""
    if "random_forest" in algorithms:
        import sklearn.ensemble  # noqa: F401, PLC0415 - takes a second that the others need not wait


def _random_forest(rows: Numbers, classes: Classes, number: int, seed: int) -> Trees:
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - see above

    # One more than the logarithm of the features, as in Weka.
    tried = int(np.log2(rows.shape[1])) + 1
    forest = RandomForestClassifier(
        n_estimators=FOREST_TREES, criterion="entropy", max_features=tried, n_jobs=-1, random_state=seed
    )
    forest.fit(rows.astype(np.float32), classes)
    trees = Trees.of_forest(forest.estimators_)
    if len(forest.classes_) == number:
        return trees
    shares = np.zeros((len(trees.shares), number))
    shares[:, forest.classes_.astype(np.int64)] = trees.shares
    return Trees(trees.roots, trees.feature, trees.threshold, trees.child, shares)


def _c45(rows: Numbers, classes: Classes, number: int, _: int) -> Trees:
    return Trees.of(fit(rows, classes, number, Settings()))


def _nbtree(rows: Numbers, classes: Classes, number: int, _: int) -> NaiveBayesTree:
    return NaiveBayesTree.fit(rows, classes, number)


def _bayesnet(rows: Numbers, classes: Classes, number: int, _: int) -> Bayes:
    return Bayes.fit(rows, classes, number)


ALGORITHMS: Final[Mapping[str, Callable[[Numbers, Classes, int, int], Learnt]]] = {
    "random_forest": _random_forest,
    "c45": _c45,
    "nbtree": _nbtree,
    "bayesnet": _bayesnet,
}
"""Each learns from rows, their classes and the number of classes, with a seed."""
