"""How well flows are told apart: tables 3.1 and 3.2, and figures 3.4 to 3.7 of the study."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError
from marline.evaluation import Confusion, held_out, stratified
from marline.flows.classify.learners import ALGORITHMS, prepare
from marline.flows.classify.options import Options
from marline.flows.classify.sample import Sample
from marline.flows.classify.selection import select
from marline.flows.features import FlowFeature
from marline.progress import Progress

CURVE = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Shares of the sample that the learning curve trains with."""

MOST_SERVICES = 100
"""Names whose accuracy is shown, those of most flows."""


class NoSuchClassError(MarlineError):
    """A file has nothing of the classes that were learnt."""


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
class Test:
    """Flows of another file, classified by a model of all of this one."""

    source: Path
    confusion: Confusion
    left_out: int
    """Flows of the other file whose class this one does not have."""


@dataclass(frozen=True, slots=True)
class Result:
    """Of one algorithm."""

    algorithm: str
    confusion: Confusion
    """Of the cross-validation."""
    services: tuple[Service, ...]
    curve: tuple[Point, ...]
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of all algorithms."""

    source: Path
    options: Options
    sample: Sample
    selected: tuple[FlowFeature, ...]
    """What CFS chooses of the candidates here."""
    results: tuple[Result, ...]


def evaluate(path: Path, options: Options) -> Evaluation:
    """Cross-validate each algorithm on a file. Raises :class:`marline.MarlineError`."""
    prepare(options.algorithms)
    sample = Sample.load(path)
    elsewhere = tuple(_elsewhere(test, sample) for test in options.tests)
    progress = Progress(len(options.algorithms) * (options.folds + len(CURVE)) + 1)
    selected = select(sample.rows, sample.classes, len(sample.names))
    progress.step("features")
    results = tuple(_result(name, sample, elsewhere, options, progress) for name in options.algorithms)
    progress.end()
    return Evaluation(
        path,
        options,
        sample,
        tuple(sample.features[at] for at in selected),
        results,
    )


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The flows of another file, in the classes of this one."""

    source: Path
    rows: Numbers
    classes: Classes
    left_out: int


def _elsewhere(path: Path, sample: Sample) -> _Elsewhere:
    other = Sample.load(path, fewest=1)
    places = np.array([sample.names.index(name) if name in sample.names else -1 for name in other.names])
    classes = places[other.classes]
    known = classes >= 0
    if not known.any():
        raise NoSuchClassError(
            f"{path}: its labelled flows are of {', '.join(other.names)}, and none of {', '.join(sample.names)}"
        )
    return _Elsewhere(path, other.of()[known], classes[known], int((~known).sum()))


def _result(
    algorithm: str, sample: Sample, elsewhere: tuple[_Elsewhere, ...], options: Options, progress: Progress
) -> Result:
    learn, number = ALGORITHMS[algorithm], len(sample.names)
    rows = sample.of()
    found = held_out(
        rows,
        sample.classes,
        stratified(sample.classes, options.folds, options.seed),
        lambda some, of: learn(some, of, number, options.seed).classify,
        lambda fold: progress.step(f"{algorithm}, fold {fold + 1}"),
    )
    tests = []
    if elsewhere:
        learnt = learn(rows, sample.classes, number, options.seed)
        for one in elsewhere:
            confusion = Confusion.of(one.classes, learnt.classify(one.rows), number)
            tests.append(Test(one.source, confusion, one.left_out))
    return Result(
        algorithm,
        Confusion.of(sample.classes, found, number),
        _services(sample, found),
        _curve(algorithm, sample, options, progress),
        tuple(tests),
    )


def _services(sample: Sample, found: Classes) -> tuple[Service, ...]:
    names, of, counts = np.unique(sample.services.astype(str), return_inverse=True, return_counts=True)
    right = np.bincount(of, weights=found == sample.classes)
    largest = np.argsort(-counts, kind="stable")[:MOST_SERVICES]
    return tuple(Service(str(names[at]), int(counts[at]), float(right[at] / counts[at])) for at in largest if names[at])


def _curve(algorithm: str, sample: Sample, options: Options, progress: Progress) -> tuple[Point, ...]:
    """A tenth is never learnt from, and the same for all points."""
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
        found = learnt.classify(rows[held])
        classified = time.perf_counter()
        accuracy = float((found == sample.classes[held]).mean())
        points.append(Point(len(few), accuracy, trained - began, int(held.sum()) / (classified - trained)))
        progress.step(f"{algorithm}, {len(few):,} flows")
    return tuple(points)
