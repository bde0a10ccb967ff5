"""The report page of an evaluation."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from marline.evaluation import Confusion
from marline.figures import Picture
from marline.flows.classify.evaluation import Evaluation, Result
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
        f"{len(sample.rows):,} flows to port 443 with a label ({kinds}), told apart by seven numbers of their records, "
        "without looking into packets. Thesis of J. Manzoor (2019), section 3.2."
    )
    result.section("Algorithms")
    result.text(
        f"Stratified cross-validation with {options.folds} parts. F is the mean over the classes, kappa Cohen's. In "
        "brackets: the study's (table 3.1), campus and residential; its flows are others, and of three classes."
    )
    result.table(_algorithms(evaluation))
    result.figure("Accuracy and its 95 % interval (figure 3.4)", figures["accuracy"].to_inline_svg())
    result.section("What is taken for what")
    result.text("Percent of the flows of each class; each row is of one class.")
    result.figure("Confusions (figure 3.5)", figures["confusion"].to_inline_svg())
    for one in evaluation.results:
        table = _confusion(one.confusion, sample.names)
        result.details(TITLES[one.algorithm], partial(Page.table, table=table))
    result.section("How much must be learnt from")
    result.text("A tenth of the flows is held back from all models. Times are of this machine, with its other work.")
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
        result.text("Accuracy of the names with most flows; each must be classified by what has seen others of it.")
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
    result.section("Features")
    result.text(
        "The models use the seven of the study. Correlation-based selection with best-first search chooses here, of "
        f"its 17 candidates: {', '.join(feature.label for feature in evaluation.selected)}."
    )
    test = "".join(f" --test {test.name}" for test in options.tests)
    algorithms = "".join(f" --algorithm {name}" for name in options.algorithms)
    command = f"python -m marline classify evaluate {evaluation.source.name} -o DIR --folds {options.folds}"
    command += f" --seed {options.seed}{algorithms}{test}"
    result.footer([("flows", evaluation.source.name), ("seed", str(options.seed)), ("repeat this", command)])
    return result.render()


def _answer(evaluation: Evaluation) -> str:
    best = max(evaluation.results, key=lambda result: result.confusion.accuracy)
    answer = f"{TITLES[best.algorithm]} finds the version of {_percent(best.confusion.accuracy)} % of the flows"
    if best.tests:
        there = [_percent(test.confusion.accuracy) for test in best.tests]
        answer += f", and of {', '.join(there)} % where it has not learnt"
    return f"{answer}."


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
