"""Trees for each protocol and for all together, their accuracy, and the information in each feature."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marline.arrays import Classes, Numbers
from marline.correlation import rank_correlation
from marline.determinants.options import Options
from marline.determinants.sample import Sample, load
from marline.determinants.throughputs import Throughputs
from marline.evaluation import Confusion, by_group, cross_validate, stratified
from marline.progress import Progress
from marline.transfers.features import Feature
from marline.trees import Node, best_cut, entropy, fit


@dataclass(frozen=True, slots=True)
class Importance:
    """The information of one feature alone about the throughput."""

    feature: Feature
    threshold: float | None
    """The threshold with the highest information gain; None if no threshold has any."""
    gain_bits: float
    """The information gain at this threshold."""
    accuracy: float
    """The share of rows that a tree of this feature alone classifies correctly, cross-validated."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A tree from some of the features."""

    name: str
    """``all``, or ``without_mean_ipt``."""
    features: tuple[Feature, ...]
    tree: Node
    """The tree grown from all rows."""
    confusion: Confusion
    """The result of the cross-validation."""
    held_back: Confusion | None
    """The result of the cross-validation that holds out groups."""


@dataclass(frozen=True, slots=True)
class Within:
    """The correlations with the throughput among the transfers of one group."""

    group: str
    rows: int
    slowest_mbps: float
    fastest_mbps: float
    correlations: Mapping[Feature, float | None]
    """The rank correlation of each feature with the throughput; None if one of them is constant."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The rows of one protocol, or of all."""

    name: str | None
    """The protocol; None for all together."""
    throughputs: Throughputs
    selections: tuple[Selection, ...]
    importances: tuple[Importance, ...]
    """All features, the most informative first."""
    within: tuple[Within, ...]
    """One for each group."""

    @property
    def entropy_bits(self) -> float:
        """The result to report."""
        return entropy(self.throughputs.counts)

    @property
    def baseline(self) -> float:
        """The share of the largest class: the accuracy of always predicting it."""
        return max(self.throughputs.counts) / sum(self.throughputs.counts)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole analysis."""

    source: Path
    options: Options
    rows: int
    skipped: int
    """Rows of runs that failed, or that lack a value."""
    subjects: tuple[Subject, ...]


def analyse(path: Path, options: Options, *, progress: bool = False) -> Report:
    """Analyse a table of transfers.

    Raises :class:`marline.MarlineError`: the table cannot be used.
    """
    data = load(path, options)
    samples = data.samples()
    selections = _selections(data.features)
    shown = Progress(len(samples) * (len(selections) + len(data.features))) if progress else None
    try:
        subjects = tuple(_subject(sample, selections, options, shown) for sample in samples)
    finally:
        if shown:
            shown.end()
    return Report(path, options, data.rows, data.skipped, subjects)


def _selections(features: Sequence[Feature]) -> dict[str, tuple[int, ...]]:
    """The columns of each selection. A second one omits features that restate the throughput, if any remain."""
    every = tuple(range(len(features)))
    others = tuple(at for at, feature in enumerate(features) if not feature.restates_throughput)
    return {"all": every} if others in ((), every) else {"all": every, "without_mean_ipt": others}


def _subject(
    sample: Sample,
    selections: dict[str, tuple[int, ...]],
    options: Options,
    progress: Progress | None,
) -> Subject:
    name, rows, throughputs = sample.name, sample.matrix, sample.throughputs
    groups = None if sample.groups is None else by_group(sample.groups)
    classes, number = throughputs.classes, len(throughputs.names)
    folds = stratified(classes, min(options.folds, len(rows)), options.seed)

    def step(what: str) -> None:
        if progress:
            progress.step(f"{name or 'all'}: {what}")

    def learn(rows: Numbers, classes: Classes) -> Node:
        return fit(rows, classes, number, options.settings)

    def select(selection: str, columns: tuple[int, ...]) -> Selection:
        chosen = rows[:, columns]
        result = Selection(
            selection,
            tuple(sample.features[at] for at in columns),
            learn(chosen, classes),
            cross_validate(chosen, classes, number, folds, learn),
            # With one group, no rows would remain for training.
            None if groups is None or groups.max() == 0 else cross_validate(chosen, classes, number, groups, learn),
        )
        step(f"tree, {selection.replace('_', ' ')}")
        return result

    def weigh(at: int, feature: Feature) -> Importance:
        column = rows[:, [at]]
        cut = best_cut(column[:, 0], classes, number, options.settings.smallest_side)
        accuracy = cross_validate(column, classes, number, folds, learn).accuracy
        step(feature.label)
        return Importance(feature, cut.threshold if cut else None, cut.gain_bits if cut else 0.0, accuracy)

    trees = tuple(select(selection, columns) for selection, columns in selections.items())
    importances = [weigh(at, feature) for at, feature in enumerate(sample.features)]
    importances.sort(key=lambda one: (-one.gain_bits, -one.accuracy))
    return Subject(name, throughputs, trees, tuple(importances), _within(sample))


def _within(sample: Sample) -> tuple[Within, ...]:
    if sample.groups is None:
        return ()
    groups = np.array(sample.groups)
    result = []
    for group in dict.fromkeys(sample.groups):
        rows, mbps = sample.matrix[groups == group], sample.mbps[groups == group]
        pairs = zip(sample.features, rows.T, strict=True)
        correlations = {feature: rank_correlation(column, mbps) for feature, column in pairs}
        result.append(Within(group, len(rows), float(mbps.min()), float(mbps.max()), correlations))
    return tuple(result)


def label(subject: Subject, subjects: Sequence[Subject]) -> str:
    """The name of a subject for readers."""
    return subject.name or ("all together" if len(subjects) > 1 else "all rows")
