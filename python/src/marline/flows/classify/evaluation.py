"""The accuracy of classification: tables 3.1 and 3.2, figures 3.4 to 3.7 of the study, and baselines."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from marline.arrays import Classes, Folds, Numbers
from marline.errors import MarlineError
from marline.evaluation import Confusion, by_group, held_out, stratified
from marline.flows.classify.calibration import Calibration
from marline.flows.classify.decision import Decision, by_rule
from marline.flows.classify.learners import ALGORITHMS, Learnt, prepare
from marline.flows.classify.options import Options
from marline.flows.classify.sample import Sample, require_others
from marline.flows.classify.selection import select
from marline.flows.columns import TCP
from marline.flows.features import CANDIDATES, TRANSPORT, FlowFeature
from marline.progress import Progress

CURVE = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Shares of the sample that the learning curve trains with."""

MOST_SERVICES = 100
"""Names whose accuracy is shown, those of most flows."""

SHUFFLES: Final = 5
"""The number of permutations of a feature to measure its importance."""


class NoSuchClassError(MarlineError):
    """A file has no flows of the learnt classes."""


@dataclass(frozen=True, slots=True)
class Point:
    """Of a learning curve."""

    flows: int
    accuracy: float
    train_s: float
    classify_per_s: float


@dataclass(frozen=True, slots=True)
class Service:
    """The flows of one name."""

    name: str
    flows: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of a feature."""

    feature: FlowFeature
    loss: float
    """The loss of accuracy when the feature is permuted, on flows that were not trained with."""


@dataclass(frozen=True, slots=True)
class Test:
    """Flows of another file, classified by a model of all of this one."""

    source: Path
    confusion: Confusion
    calibration: Calibration
    left_out: int
    """Flows of the other file whose class this one does not have."""


@dataclass(frozen=True, slots=True)
class Result:
    """Of one algorithm."""

    algorithm: str
    confusion: Confusion
    """Of the cross-validation."""
    calibration: Calibration
    by_group: dict[str, Confusion | None]
    """The results of cross-validations that hold out whole groups; empty if there is only one group."""
    importances: tuple[Importance, ...]
    """The most important ones first."""
    services: tuple[Service, ...]
    curve: tuple[Point, ...]
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """An answer that needs no learning."""

    name: str
    text: str
    confusion: Confusion
    tests: tuple[Confusion, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of all algorithms."""

    sources: tuple[Path, ...]
    options: Options
    sample: Sample
    selected: tuple[FlowFeature, ...]
    """The candidates that CFS selects here."""
    baselines: tuple[Baseline, ...]
    results: tuple[Result, ...]

    @property
    def source(self) -> Path:
        """The first file."""
        return self.sources[0]


def evaluate(path: Path | Sequence[Path], options: Options) -> Evaluation:
    """Cross-validate each algorithm on a file, or on several. Raises :class:`marline.MarlineError`."""
    sources = (path,) if isinstance(path, Path) else tuple(path)
    prepare(options.algorithms)
    sample = Sample.load(*sources, features=options.features)
    elsewhere = tuple(_elsewhere(test, sample, sources[0]) for test in options.tests)
    task = _Task(sample, elsewhere, _deals(sample, options), options)
    steps = sum(len(np.unique(folds)) for folds in task.deals.values() if folds is not None) + len(CURVE)
    progress = Progress(len(options.algorithms) * steps + 1)
    selected = select(sample.rows, sample.classes, len(sample.names))
    progress.step("features")
    results = tuple(_result(name, task, progress) for name in options.algorithms)
    progress.end()
    return Evaluation(
        sources,
        options,
        sample,
        tuple(CANDIDATES[at] for at in selected),
        _baselines(sample, elsewhere),
        results,
    )


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The flows of another file, in the classes of this one."""

    source: Path
    rows: Numbers
    transport: Numbers
    classes: Classes
    left_out: int


@dataclass(frozen=True, slots=True)
class _Task:
    """The work of each algorithm."""

    sample: Sample
    elsewhere: tuple[_Elsewhere, ...]
    deals: dict[str, Folds | None]
    """The folds of each validation."""
    options: Options


def _elsewhere(path: Path, sample: Sample, learnt: Path) -> _Elsewhere:
    other = Sample.load(path, features="transport" if TRANSPORT in sample.used else "published", fewest=1)
    require_others(path, other.identities, learnt, sample.identities)
    places = np.array([sample.names.index(name) if name in sample.names else -1 for name in other.names])
    classes = places[other.classes]
    known = classes >= 0
    if not known.any():
        raise NoSuchClassError(
            f"{path}: its labelled flows are of {', '.join(other.names)}, and none of {', '.join(sample.names)}"
        )
    return _Elsewhere(path, other.of()[known], other.transport[known], classes[known], int((~known).sum()))


STRATIFIED: Final = "stratified"

GROUPS: Final = ("client", "file")
"""The groups of flows that are held out together: flows of one client, or of one capture, are similar."""


def _deals(sample: Sample, options: Options) -> dict[str, Folds | None]:
    """The folds of each validation."""
    found: dict[str, Folds | None] = {STRATIFIED: stratified(sample.classes, options.folds, options.seed)}
    for name, groups in zip(GROUPS, (sample.clients, sample.sources), strict=True):
        of = by_group(groups)
        found[name] = None if of.max() == 0 else _dealt(of, options.folds)
    return found


def _dealt(groups: Folds, folds: int) -> Folds:
    """Whole groups to folds, the largest first and each to the fold with the fewest rows."""
    sizes = np.bincount(groups)
    filled = np.zeros(min(folds, len(sizes)), dtype=np.int64)
    places = np.empty(len(sizes), dtype=np.int64)
    for group in np.argsort(-sizes, kind="stable"):
        places[group] = filled.argmin()
        filled[places[group]] += sizes[group]
    return places[groups]


def _baselines(sample: Sample, elsewhere: tuple[_Elsewhere, ...]) -> tuple[Baseline, ...]:
    """Answers that need no learning, over the whole sample."""
    largest = int(np.bincount(sample.classes).argmax())
    over_tcp = sample.classes[sample.transport == TCP]
    of_tcp = sample.names[int(np.bincount(over_tcp).argmax())] if len(over_tcp) else "h2"
    number = len(sample.names)

    def judged(classes: Classes, taken: Classes) -> Confusion:
        # A version that is not among the classes is wrong for each flow.
        wrong = np.where(classes == 0, 1, 0)
        return Confusion.of(classes, np.where(taken < 0, wrong, taken), number)

    def of(name: str, text: str, taken: "list[Classes]") -> Baseline:
        first, *others = (
            judged(classes, one)
            for classes, one in zip([sample.classes, *(one.classes for one in elsewhere)], taken, strict=True)
        )
        return Baseline(name, text, first, tuple(others))

    def ruled(name: str, version: str) -> Baseline:
        taken = [by_rule(one, sample.names, version) for one in every]
        return of(name, f"UDP is h3, all else {version}", taken)

    every = [sample.transport, *(one.transport for one in elsewhere)]
    majority = of("majority", f"always {sample.names[largest]}", [np.full(len(one), largest) for one in every])
    rules = [ruled("transport", "h2")]
    # The best accuracy by the transport alone.
    rules += [ruled("transport_majority", of_tcp)] if of_tcp != "h2" else []
    return majority, *rules


def _result(algorithm: str, task: _Task, progress: Progress) -> Result:
    sample, options = task.sample, task.options
    learn, number = ALGORITHMS[algorithm], len(sample.names)
    rows = sample.of()

    def decided(name: str, folds: Folds) -> Decision:
        said = held_out(
            rows,
            sample.classes,
            folds,
            lambda some, of: learn(some, of, number, options.seed).probabilities,
            lambda fold: progress.step(f"{algorithm}, {name}, fold {fold + 1}"),
        )
        return Decision.of(said, sample.transport, sample.names)

    found = {name: None if folds is None else decided(name, folds) for name, folds in task.deals.items()}
    whole = found.pop(STRATIFIED)
    assert whole is not None
    tests = []
    if task.elsewhere:
        learnt = learn(rows, sample.classes, number, options.seed)
        for one in task.elsewhere:
            decision = Decision.of(learnt.probabilities(one.rows), one.transport, sample.names)
            confusion = Confusion.of(one.classes, decision.classes, number)
            tests.append(Test(one.source, confusion, Calibration.of(decision, one.classes), one.left_out))
    curve, importances = _curve(algorithm, sample, options, progress)
    return Result(
        algorithm,
        Confusion.of(sample.classes, whole.classes, number),
        Calibration.of(whole, sample.classes),
        {
            name: None if one is None else Confusion.of(sample.classes, one.classes, number)
            for name, one in found.items()
        },
        importances,
        _services(sample, whole.classes),
        curve,
        tuple(tests),
    )


def _services(sample: Sample, found: Classes) -> tuple[Service, ...]:
    names, of, counts = np.unique(sample.services.astype(str), return_inverse=True, return_counts=True)
    right = np.bincount(of, weights=found == sample.classes)
    largest = np.argsort(-counts, kind="stable")[:MOST_SERVICES]
    return tuple(Service(str(names[at]), int(counts[at]), float(right[at] / counts[at])) for at in largest if names[at])


def _curve(
    algorithm: str, sample: Sample, options: Options, progress: Progress
) -> tuple[tuple[Point, ...], tuple[Importance, ...]]:
    """A tenth is held out, the same for all points; the last of them measures the importance of features."""
    learn, number = ALGORITHMS[algorithm], len(sample.names)
    rows = sample.of()
    held = stratified(sample.classes, 10, options.seed) == 0
    train, train_classes = rows[~held], sample.classes[~held]
    order = np.random.default_rng(options.seed).permutation(len(train))
    points = []
    for share in CURVE:
        few = order[: max(50, round(share * len(train)))]
        began = time.perf_counter()
        learnt = learn(train[few], train_classes[few], number, options.seed)
        trained = time.perf_counter()
        said = learnt.probabilities(rows[held])
        classified = time.perf_counter()
        found = Decision.of(said, sample.transport[held], sample.names).classes
        accuracy = float((found == sample.classes[held]).mean())
        points.append(Point(len(few), accuracy, trained - began, int(held.sum()) / (classified - trained)))
        progress.step(f"{algorithm}, {len(few):,} flows")
    return tuple(points), _importances(learnt, sample, np.flatnonzero(held), options.seed)


def _importances(learnt: Learnt, sample: Sample, held: Classes, seed: int) -> tuple[Importance, ...]:
    """The loss of accuracy when a feature is permuted among flows."""
    rows, transport, classes = sample.of()[held], sample.transport[held], sample.classes[held]
    rng = np.random.default_rng(seed)

    def right(rows: Numbers, transport: Numbers) -> float:
        decision = Decision.of(learnt.probabilities(np.ascontiguousarray(rows)), transport, sample.names)
        return float((decision.classes == classes).mean())

    whole = right(rows, transport)
    found = []
    for at, feature in enumerate(sample.used):
        left = []
        for _ in range(SHUFFLES):
            order = rng.permutation(len(rows))
            shuffled = rows.copy()
            shuffled[:, at] = rows[order, at]
            left.append(right(shuffled, transport[order] if feature == TRANSPORT else transport))
        found.append(Importance(feature, whole - float(np.mean(left))))
    return tuple(sorted(found, key=lambda one: -one.loss))
