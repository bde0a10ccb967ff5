"""Growing a tree."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from marline.arrays import Classes, Numbers
from marline.limits import MAX_DEPTH
from marline.trees.information import Counts, entropies, entropy
from marline.trees.nodes import Leaf, Node, Split
from marline.trees.prune import prune


class Criterion(StrEnum):
    """The criterion that selects the question at a node."""

    GAIN = "gain"
    """The one with the highest information gain."""
    GAIN_RATIO = "gain-ratio"
    """Of those whose gain is at least average, the one with the most gain for each bit of its answer: C4.5."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of growing and pruning trees. The defaults are those of C4.5, and of Weka's J48."""

    criterion: Criterion = Criterion.GAIN_RATIO
    smallest_side: int = 2
    """The fewest rows on each side of a split."""
    confidence: float | None = 0.25
    """The confidence of pessimistic pruning: lower prunes more. None disables pruning."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The best threshold of a feature."""

    threshold: float
    gain_bits: float
    """Information gain."""
    ratio: float
    """The gain, less the cost of choosing the threshold, for each bit of the answer."""
    net_bits: float
    """The gain, less the cost of choosing the threshold among the candidates, per row (C4.5, release 8)."""


def fit(rows: Numbers, classes: Classes, number: int, settings: Settings) -> Node:
    """A tree for ``rows``, whose classes are below ``number``."""
    grown = _grow(rows, classes, number, settings, 0)
    return grown if settings.confidence is None else prune(grown, rows, classes, settings.confidence)


def best_cut(values: Numbers, classes: Classes, number: int, smallest_side: int) -> Cut | None:
    """The threshold of ``values`` with the highest information gain, between two that differ; None if none gains."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    total = len(values)
    # Rows below each candidate; both sides have the required number.
    below = np.flatnonzero(ordered[:-1] < ordered[1:]) + 1
    below = below[(below >= smallest_side) & (total - below >= smallest_side)]
    if not below.size:
        return None
    running = np.cumsum(classes[order][:, None] == np.arange(number), axis=0)
    low = running[below - 1].astype(np.float64)
    high = running[-1] - low
    share = below / total
    gains = entropy(running[-1]) - share * entropies(low) - (1 - share) * entropies(high)
    best = int(np.argmax(gains))
    gain = float(gains[best])
    if gain <= 1e-12:
        return None
    at = below[best]
    threshold = float(ordered[at - 1] + (ordered[at] - ordered[at - 1]) / 2)
    # Between neighbouring floats the middle is one of them, and must not be the upper one.
    threshold = min(threshold, float(np.nextafter(ordered[at], -np.inf)))
    net = gain - float(np.log2(below.size)) / total
    return Cut(threshold, gain, net / entropy([at, total - at]), net)


def _grow(rows: Numbers, classes: Classes, number: int, settings: Settings, asked: int) -> Node:
    bins = np.bincount(classes, minlength=number)
    counts: Counts = tuple(int(count) for count in bins)
    if bins.max() == len(rows) or len(rows) < 2 * settings.smallest_side or asked == MAX_DEPTH:
        return Leaf(counts)
    side = _smallest_side(len(rows), number, settings)
    cuts = [best_cut(rows[:, feature], classes, number, side) for feature in range(rows.shape[1])]
    chosen = _choose(cuts, settings.criterion)
    if chosen is None:
        return Leaf(counts)
    cut = cuts[chosen]
    assert cut is not None
    low = rows[:, chosen] <= cut.threshold
    return Split(
        counts,
        chosen,
        cut.threshold,
        _grow(rows[low], classes[low], number, settings, asked + 1),
        _grow(rows[~low], classes[~low], number, settings, asked + 1),
    )


def _smallest_side(rows: int, number: int, settings: Settings) -> int:
    """Rows of each side; C4.5 requires more if there are many rows for each class, up to 25."""
    if settings.criterion is Criterion.GAIN:
        return settings.smallest_side
    return int(max(settings.smallest_side, min(25, np.ceil(0.1 * rows / number))))


def _choose(cuts: list[Cut | None], criterion: Criterion) -> int | None:
    """The feature to ask about; the first of equals."""
    if criterion is Criterion.GAIN:
        gains = {at: cut.gain_bits for at, cut in enumerate(cuts) if cut}
        return max(gains, key=lambda at: (gains[at], -at)) if gains else None
    useful = {at: cut for at, cut in enumerate(cuts) if cut and cut.net_bits > 0}
    if not useful:
        return None
    average = sum(cut.net_bits for cut in useful.values()) / len(useful)
    # A gain that is below average by no more than a rounding counts as average.
    good = {at: cut.ratio for at, cut in useful.items() if cut.net_bits >= average - 1e-3}
    return max(good, key=lambda at: (good[at], -at))
