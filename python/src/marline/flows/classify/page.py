"""The report page of an evaluation."""

from collections.abc import Mapping

from marline.evaluation import Confusion
from marline.figures import Picture
from marline.flows.classify.evaluation import Evaluation, Result
from marline.pages import Page, Table

TITLES = {"random_forest": "Random Forest", "c45": "C4.5", "nbtree": "NBTree", "bayesnet": "BayesNet"}

# Table 3.1 of the study and the accuracies of its section 3.2.4: campus, residential.
_PUBLISHED = {
    "random_forest": ("97.5, 97.5", "97.3, 97.5", "94.8, 94.7"),
    "c45": ("95, 95", "95.2, 95.5", "90.8, 90.4"),
    "nbtree": ("93, 93", "93.2, 93.0", "86.4, 87.0"),
    "bayesnet": ("88, 86", "87.7, 86.2", "76.5, 70.0"),
}


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
        "brackets: the study's, campus and residential; its flows are others, and of three classes."
    )
    result.table(_algorithms(evaluation))
    result.section("What is taken for what")
    for one in evaluation.results:
        result.subsection(TITLES[one.algorithm])
        result.table(_confusion(one.confusion, sample.names))
    result.section("How much must be learnt from")
    result.text("A tenth of the flows is held back from all models. Times are of this machine, with its other work.")
    result.figure("Accuracy by the flows learnt from", figures["learning-curve"].to_inline_svg())
    result.table(_curve(evaluation))
    result.section("By service")
    result.text("Accuracy of the names with most flows; each must be classified by what has seen others of it.")
    result.table(_services(evaluation))
    if options.test is not None:
        result.section("Elsewhere")
        result.text(
            f"Learnt from all flows of {evaluation.source.name}, tested with {options.test.name}. "
            f"{evaluation.elsewhere_left_out:,} of its flows are of a class that the first has not."
        )
        result.table(_elsewhere(evaluation))
    result.section("Features")
    result.text(
        "The models use the seven of the study. Correlation-based selection with best-first search chooses here, of "
        f"its 17 candidates: {', '.join(feature.label for feature in evaluation.selected)}."
    )
    test = f" --test {options.test.name}" if options.test else ""
    command = f"python -m marline classify evaluate {evaluation.source.name} -o DIR --seed {options.seed}{test}"
    result.footer([("flows", evaluation.source.name), ("seed", str(options.seed)), ("repeat this", command)])
    return result.render()


def _answer(evaluation: Evaluation) -> str:
    best = max(evaluation.results, key=lambda result: result.confusion.accuracy)
    answer = f"{TITLES[best.algorithm]} finds the version of {_percent(best.confusion.accuracy)} % of the flows"
    if best.elsewhere is not None:
        answer += f", and of {_percent(best.elsewhere.accuracy)} % where it has not learnt"
    return f"{answer}."


def _algorithms(evaluation: Evaluation) -> Table:
    rows = []
    for result in evaluation.results:
        published = _PUBLISHED[result.algorithm]
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
        [one.name, f"{one.flows:,}", *(f"{_percent(of[one.name])} %" for of in accuracies.values())]
        for one in first.services
    ]
    header = ["name", "flows", *(TITLES[name] for name in accuracies)]
    return Table(header, rows, frozenset(range(1, len(header))))


def _elsewhere(evaluation: Evaluation) -> Table:
    rows = [
        [
            TITLES[result.algorithm],
            f"{_percent(result.confusion.accuracy)} %",
            f"{_percent(result.elsewhere.accuracy)} %",
            f"{_percent(result.elsewhere.f_measure)} %",
        ]
        for result in evaluation.results
        if result.elsewhere is not None
    ]
    return Table(["", "accuracy here", "accuracy there", "F there"], rows, frozenset({1, 2, 3}))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
