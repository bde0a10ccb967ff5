"""The report page of an evaluation."""

from collections.abc import Mapping
from functools import partial
from math import isnan
from typing import Final

from marline.evaluation import Confusion
from marline.figures import Picture
from marline.flows.classify.calibration import Calibration
from marline.flows.classify.decision import DEFAULT_THRESHOLD
from marline.flows.classify.evaluation import Evaluation, Result
from marline.flows.features import TRANSPORT
from marline.pages import Page, Table
from marline.text import short

TITLES = {"random_forest": "Random Forest", "c45": "C4.5", "nbtree": "NBTree", "bayesnet": "BayesNet"}

PUBLISHED: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "random_forest": {"accuracy": (97.5, 97.5), "f": (97.3, 97.5), "kappa": (94.8, 94.7)},
    "c45": {"accuracy": (95.0, 95.0), "f": (95.2, 95.5), "kappa": (90.8, 90.4)},
    "nbtree": {"accuracy": (93.0, 93.0), "f": (93.2, 93.0), "kappa": (86.4, 87.0)},
    "bayesnet": {"accuracy": (88.0, 86.0), "f": (87.7, 86.2), "kappa": (76.5, 70.0)},
}
"""Table 3.1 of the study and the accuracies of its section 3.2.4, percent: campus, residential."""


def page(evaluation: Evaluation, figures: Mapping[str, Picture]) -> str:
    """The page as HTML."""
    sample, options = evaluation.sample, evaluation.options
    result = Page("Which version of HTTP a flow carries")
    result.answer(_answer(evaluation))
    kinds = ", ".join(f"{int((sample.classes == at).sum()):,} of {name}" for at, name in enumerate(sample.names))
    result.lead(
        f"{len(sample.rows):,} flows to port 443 with a label ({kinds}), told apart by {_features(evaluation)}, "
        "without looking into packets. Thesis of J. Manzoor (2019), section 3.2."
    )
    result.section("Algorithms")
    result.text(
        f"Stratified cross-validation with {options.folds} parts; versions that the transport of a flow cannot carry "
        "are excluded. F is the mean over the classes, kappa Cohen's. In "
        "brackets: the study's (table 3.1), campus and residential; its flows are others, and of three classes."
    )
    result.table(_algorithms(evaluation))
    _worth(result, evaluation)
    result.figure("Accuracy and its 95 % interval (figure 3.4)", figures["accuracy"].to_inline_svg())
    result.section("Confusion matrices")
    result.text("Percent of the flows of each class; each row is of one class.")
    result.figure("Confusions (figure 3.5)", figures["confusion"].to_inline_svg())
    for one in evaluation.results:
        table = _confusion(one.confusion, sample.names)
        result.details(TITLES[one.algorithm], partial(Page.table, table=table))
    result.section("Learning curve")
    result.text("A tenth of the flows is held out from all models. Times are of this machine, with its other work.")
    result.figure("Accuracy by the flows learnt from", figures["learning-curve"].to_inline_svg())
    result.figure("Time of training (figure 3.7a)", figures["training-time"].to_inline_svg())
    result.figure("Rate of classification (figure 3.7b)", figures["classification-rate"].to_inline_svg())
    result.table(_curve(evaluation))
    result.text(
        "The study trains with 500,000 flows in 12 s (BayesNet), 141 s (C4.5), 305 s (Random Forest) and 481 s "
        "(NBTree), and classifies 10 million in 63, 31, 861 and 106 s, on a processor of 2.5 GHz."
    )
    if evaluation.results[0].services:
        result.section("By service")
        result.text("Accuracy of the names with most flows; each is classified by a model of other flows.")
        result.figure("Accuracy and share of names (figure 3.6)", figures["services"].to_inline_svg())
        result.table(_services(evaluation))
    if options.tests:
        result.section("Elsewhere")
        result.text(
            f"Learnt from all flows of {evaluation.source.name}, tested with others. The study's Random Forest, learnt "
            "from an hour of June 2016, finds 94.8 to 95.9 % until September, and 90.4 to 91.0 % from October on, when "
            "a protocol of its own came up in the traffic of one company (table 3.2); in the other network it finds "
            "92 % (section 3.2.7)."
        )
        result.table(_tests(evaluation))
    _calibration(result, evaluation)
    result.section("Features")
    result.text(
        f"The models use {_features(evaluation)}. Correlation-based selection with best-first search chooses here, of "
        f"the study's 17 candidates: {', '.join(feature.label for feature in evaluation.selected)}."
    )
    result.text(
        "The worth of a feature is the accuracy in points that is lost where it has the values of other flows, of "
        "the tenth that is held back. Features that say the same are each worth little."
    )
    result.table(_importances(evaluation))
    test = "".join(f" --test {test.name}" for test in options.tests)
    test += f" --features {options.features}" if options.features else ""
    algorithms = "".join(f" --algorithm {name}" for name in options.algorithms)
    files = " ".join(source.name for source in evaluation.sources)
    command = f"python -m marline classify evaluate {files} -o DIR --folds {options.folds}"
    command += f" --seed {options.seed}{algorithms}{test}"
    result.footer([("flows", files), ("seed", str(options.seed)), ("repeat this", command)])
    return result.render()


def _answer(evaluation: Evaluation) -> str:
    best = max(evaluation.results, key=lambda result: result.confusion.accuracy)
    answer = f"{TITLES[best.algorithm]} finds the version of {_percent(best.confusion.accuracy)} % of the flows"
    if best.tests:
        there = [_percent(test.confusion.accuracy) for test in best.tests]
        answer += f", and of {', '.join(there)} % where it has not learnt"
    return f"{answer}. {better_rule(evaluation)}".strip()


def better_rule(evaluation: Evaluation) -> str:
    """States where an answer without learning is at least as good as the best algorithm; empty if nowhere."""
    best = max(result.confusion.accuracy for result in evaluation.results)
    found = [f"{one.text}, here" for one in evaluation.baselines if one.confusion.accuracy >= best]
    for name in evaluation.results[0].by_group:
        held = [of.accuracy for result in evaluation.results if (of := result.by_group[name])]
        found += [
            f"{one.text}, by {name}" for one in evaluation.baselines if held and one.confusion.accuracy >= max(held)
        ]
    for at, source in enumerate(evaluation.options.tests):
        there = max(result.tests[at].confusion.accuracy for result in evaluation.results)
        found += [f"{one.text}, in {source.name}" for one in evaluation.baselines if one.tests[at].accuracy >= there]
    return f"As good or better without learning: {'; '.join(found)}." if found else ""


def _features(evaluation: Evaluation) -> str:
    """The features that models use."""
    return "seven numbers of their records" + (" and the transport" if TRANSPORT in evaluation.sample.used else "")


def _worth(result: Page, evaluation: Evaluation) -> None:
    """Baselines for an accuracy."""
    result.subsection("Beside answers that need no learning")
    result.text(
        "Beside the algorithms: answers that need no learning. By client and by file, all flows of a client or of a "
        "file are held back together, because they resemble each other."
    )
    result.table(_beside(evaluation))


def _beside(evaluation: Evaluation) -> Table:
    groups = list(evaluation.results[0].by_group)
    rows = []
    for one in evaluation.results:
        held = ["-" if of is None else f"{_percent(of.accuracy)} %" for of in one.by_group.values()]
        tests = [f"{_percent(test.confusion.accuracy)} %" for test in one.tests]
        rows.append([TITLES[one.algorithm], f"{_percent(one.confusion.accuracy)} %", *held, *tests])
    for base in evaluation.baselines:
        tests = [f"{_percent(test.accuracy)} %" for test in base.tests]
        rows.append([base.text, f"{_percent(base.confusion.accuracy)} %", *["" for _ in groups], *tests])
    header = ["accuracy", "held back at random", *(f"by {name}" for name in groups)]
    header += [test.name for test in evaluation.options.tests]
    return Table(header, rows, frozenset(range(1, len(header))))


def _calibration(result: Page, evaluation: Evaluation) -> None:
    result.section("How probable an answer is")
    result.text(
        "Of the cross-validation. Of answers with a probability of 80 %, 80 in 100 should be correct. The Brier "
        "score is the mean squared error of the probabilities, 0 at best. Below a threshold, a flow "
        f"is unknown: `classify predict` has {DEFAULT_THRESHOLD:g}, unless --threshold is given."
    )
    rows = [
        [TITLES[one.algorithm], f"{one.calibration.brier:.3f}", f"{one.calibration.brier_of_shares:.3f}"]
        for one in evaluation.results
    ]
    result.table(Table(["", "Brier score", "of the shares of the classes alone"], rows, frozenset({1, 2})))
    for one in evaluation.results:
        result.details(
            TITLES[one.algorithm],
            lambda inside, of=one.calibration: inside.table(_bins(of)).table(_thresholds(of)),  # type: ignore[misc]
        )


def _bins(calibration: Calibration) -> Table:
    rows = [
        [f"{100 * one.low:.0f} to {100 * one.high:.0f} %", f"{one.flows:,}"]
        + [f"{_percent(share)} %" for share in (one.probability, one.right)]
        for one in calibration.bins
        if one.flows
    ]
    return Table(["said to be probable to", "flows", "mean", "right"], rows, frozenset({1, 2, 3}))


def _thresholds(calibration: Calibration) -> Table:
    rows = [
        [f"{one.threshold:g}", f"{_percent(one.answered)} %", "-" if isnan(one.right) else f"{_percent(one.right)} %"]
        for one in calibration.answers
    ]
    return Table(["threshold", "flows with an answer", "right of these"], rows, frozenset({0, 1, 2}))


def _importances(evaluation: Evaluation) -> Table:
    of = {result.algorithm: {one.feature: one.loss for one in result.importances} for result in evaluation.results}
    rows = [
        [one.feature.label, *(f"{100 * losses[one.feature]:.1f}" for losses in of.values())]
        for one in evaluation.results[0].importances
    ]
    header = ["feature", *(TITLES[name] for name in of)]
    return Table(header, rows, frozenset(range(1, len(header))))


def _algorithms(evaluation: Evaluation) -> Table:
    rows = []
    for result in evaluation.results:
        published = [f"{campus:.1f}, {homes:.1f}" for campus, homes in PUBLISHED[result.algorithm].values()]
        low, high = result.confusion.interval
        quality = (result.confusion.accuracy, result.confusion.f_measure, result.confusion.kappa)
        values = [f"{_percent(value)} ({theirs})" for value, theirs in zip(quality, published, strict=True)]
        rows.append([TITLES[result.algorithm], *values, f"{_percent(low)} to {_percent(high)}"])
    return Table(["", "accuracy, %", "F, %", "kappa, %", "95 % of the accuracy"], rows, frozenset({1, 2, 3, 4}))


def _confusion(confusion: Confusion, names: tuple[str, ...]) -> Table:
    rows = []
    for name, row in zip(names, confusion.counts, strict=True):
        whole = max(1, int(row.sum()))
        rows.append([name, *(f"{100 * count / whole:.1f} %" for count in row), f"{int(row.sum()):,}"])
    return Table(["is, taken for", *names, "flows"], rows, frozenset(range(1, len(names) + 2)))


def _curve(evaluation: Evaluation) -> Table:
    rows = [
        [
            TITLES[result.algorithm],
            f"{point.flows:,}",
            f"{_percent(point.accuracy)} %",
            f"{point.train_s:.2f}",
            f"{point.classify_per_s / 1e6:.2f}",
        ]
        for result in evaluation.results
        for point in result.curve
    ]
    header = ["", "flows learnt from", "accuracy", "training, s", "million classified/s"]
    return Table(header, rows, frozenset({1, 2, 3, 4}))


def _services(evaluation: Evaluation) -> Table:
    first: Result = evaluation.results[0]
    accuracies = {
        result.algorithm: {one.name: one.accuracy for one in result.services} for result in evaluation.results
    }
    rows = [
        [short(one.name), f"{one.flows:,}", *(f"{_percent(of[one.name])} %" for of in accuracies.values())]
        for one in first.services
    ]
    header = ["name", "flows", *(TITLES[name] for name in accuracies)]
    return Table(header, rows, frozenset(range(1, len(header))))


def _tests(evaluation: Evaluation) -> Table:
    rows = []
    for result in evaluation.results:
        for test in result.tests:
            values = [result.confusion.accuracy, test.confusion.accuracy, test.confusion.f_measure]
            numbers = [f"{test.confusion.rows:,}", f"{test.left_out:,}", *(f"{_percent(value)} %" for value in values)]
            rows.append([TITLES[result.algorithm], test.source.name, *numbers])
    header = ["", "tested with", "flows", "of other classes", "accuracy here", "accuracy there", "F there"]
    return Table(header, rows, frozenset(range(2, 7)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
