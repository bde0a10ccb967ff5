"""Selection of features (M. Hall, "Correlation-based feature selection for machine learning", 1999)."""

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.flows.classify.discrete import cuts, intervals
from marline.trees import entropy

STALE = 5
"""Expansions without a better subset after which the search ends: Weka's default."""

_Binned = npt.NDArray[np.int64]


def select(rows: Numbers, classes: Classes, number: int) -> list[int]:
    """The columns of the best subset, found by best-first search from the empty one; ascending."""
    binned = [intervals(column, cuts(column, classes, number)) for column in rows.T]
    with_class = np.array([symmetrical_uncertainty(column, classes) for column in binned])
    with_each = np.eye(len(binned))
    for one in range(len(binned)):
        for other in range(one):
            with_each[one, other] = with_each[other, one] = symmetrical_uncertainty(binned[one], binned[other])
    return _best_first(with_class, with_each)


def merit(subset: frozenset[int], with_class: Numbers, with_each: Numbers) -> float:
    """The merit of a subset: its correlation with the class against the correlations among its features."""
    if not subset:
        return 0.0
    places = sorted(subset)
    among = with_each[np.ix_(places, places)]
    return float(with_class[places].sum() / np.sqrt(among.sum()))


def symmetrical_uncertainty(one: _Binned, other: _Binned) -> float:
    """The symmetrical uncertainty of both, from 0 to 1."""
    spread = [_entropy(column) for column in (one, other)]
    if not sum(spread):
        return 0.0
    both = _entropy(one * (int(other.max()) + 1) + other)
    return 2 * (sum(spread) - both) / sum(spread)


def _entropy(column: _Binned) -> float:
    return entropy([int(count) for count in np.unique(column, return_counts=True)[1]])


def _best_first(with_class: Numbers, with_each: Numbers) -> list[int]:
    best, best_merit, stale = frozenset[int](), 0.0, 0
    waiting = {best: 0.0}
    seen = {best}
    while waiting and stale < STALE:
        subset = max(waiting, key=lambda known: (waiting[known], sorted(known)))
        del waiting[subset]
        better = False
        for feature in range(len(with_class)):
            wider = subset | {feature}
            if wider in seen:
                continue
            seen.add(wider)
            waiting[wider] = merit(wider, with_class, with_each)
            if waiting[wider] > best_merit + 1e-9:
                best, best_merit, better = wider, waiting[wider], True
        stale = 0 if better else stale + 1
    return sorted(best)
