"""The report page of an analysis."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from marline.determinants.analysis import Report, Selection, Subject, label
from marline.evaluation import Confusion
from marline.figures import Picture
from marline.figures.tree import LEVELS
from marline.pages import Page, Table
from marline.trees import Leaf, depth, leaves, to_text

_SELECTIONS = {
    "all": "All features",
    "without_mean_ipt": "Without mean inter-packet times",
}
MOST_GROUPS = 16
"""Groups that a table shows."""

_SHORT = {"all": "all", "without_mean_ipt": "without mean IPT"}


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a subject."""

    trees: Mapping[str, Picture]
    """By the name of the selection."""
    gains: Picture


def page(report: Report, figures: Mapping[str | None, Figures]) -> str:
    """The page as HTML."""
    width = f"{report.options.class_mbps:g}"
    result = Page("What decides the throughput of a transfer")
    result.answer(_answer(report))
    result.lead(
        f"Decision trees (C4.5) that find the class of throughput, {width} Mbit/s wide, of {report.rows:,} transfers "
        "by their features. Thesis of J. Manzoor (2019), section 6.2."
    )
    result.facts(_facts(report))
    result.section("Trees")
    result.text(
        "Accuracy is cross-validated: a transfer is classified by a tree that has not seen it, but others like it. "
        "Where a group is held back, the tree has seen none of the group; a class that occurs nowhere else cannot be "
        "found then. IPT is the inter-packet time."
    )
    result.table(_trees(report))
    _study(result, report)
    for subject in report.subjects:
        _subject(result, report, subject, figures[subject.name])
    _method(result, report)
    options = report.options
    command = ["python -m marline determinants", report.source.name, "-o DIR", f"--seed {options.seed}"]
    command += [f"--group {options.group}"] if options.group else []
    command += [f"--without {name}" for name in options.without]
    result.footer([("table", report.source.name), ("seed", str(options.seed)), ("repeat this", " ".join(command))])
    return result.render()


def _answer(report: Report) -> str:
    subject = report.subjects[0]
    first, last = subject.selections[0], subject.selections[-1]
    found = _percent(first.confusion.accuracy)
    answer = f"A tree of {len(first.features)} features finds the class of {found} of the transfers"
    if last is not first:
        answer += f"; without the mean inter-packet times, that of {_percent(last.confusion.accuracy)}"
    tree = last.tree
    if isinstance(tree, Leaf):
        return f"{answer}."
    return f"{answer}. Its first question is about the {last.features[tree.feature].label}."


def _facts(report: Report) -> list[tuple[str, str]]:
    subject = report.subjects[0]
    facts = [
        ("transfers", f"{report.rows:,}"),
        ("classes", str(len(subject.throughputs.names))),
        ("largest class", _percent(subject.baseline)),
        ("accuracy", _percent(subject.selections[0].confusion.accuracy)),
    ]
    return facts + ([("left out", f"{report.skipped:,}")] if report.skipped else [])


def _trees(report: Report) -> Table:
    group = report.options.group
    held = [f"with each {group} held back"] if group else []
    header = ["transfers of", "features", "root", "leaves", "accuracy", "95 % interval", *held]
    rows = [
        [
            label(subject, report.subjects),
            _SHORT[selection.name],
            _root(selection),
            str(leaves(selection.tree)),
            _percent(selection.confusion.accuracy),
            _interval(selection.confusion),
            *([_percent(selection.held_back.accuracy) if selection.held_back else "one group only"] if group else []),
        ]
        for subject in report.subjects
        for selection in subject.selections
    ]
    return Table(header, rows, frozenset({3, 4, 5, 6}))


def _study(result: Page, report: Report) -> None:
    """The study's finding compared with ours: the mean congestion window at the root of all trees (section 6.2.2)."""
    rows = [
        [
            label(subject, report.subjects),
            f"{at} of {len(subject.importances)}",
            f"{one.gain_bits:.2f}",
            _percent(one.accuracy),
        ]
        for subject in report.subjects
        for at, one in enumerate(subject.importances, start=1)
        if one.feature.column == "mean_cwnd_bytes"
    ]
    if rows:
        result.subsection("The mean congestion window")
        result.text("The study finds it at the root of all its trees. Here its place by information gain is:")
        result.table(Table(["transfers of", "place", "gain, bit", "accuracy of it alone"], rows, frozenset({1, 2, 3})))


def _subject(result: Page, report: Report, subject: Subject, figures: Figures) -> None:
    name = label(subject, report.subjects)
    result.section(name[0].upper() + name[1:] if subject.name is None else name)
    counts = subject.throughputs.counts
    result.text(
        f"{sum(counts):,} transfers; the largest class is {_percent(subject.baseline)} of them. Finding the class of "
        f"one takes {subject.entropy_bits:.2f} bit."
    )
    result.figure(
        "The information of each feature alone",
        figures.gains.to_inline_svg(),
        "Left: the information gain of the best question about it. Right: the accuracy of a tree of it alone.",
    )
    _within(result, report, subject)
    for selection in subject.selections:
        _selection(result, subject, selection, figures.trees[selection.name])


def _within(result: Page, report: Report, subject: Subject) -> None:
    """The correlations where each group is alone; as many groups as fit a table."""
    groups = subject.within[:MOST_GROUPS]
    if not groups:
        return
    name = report.options.group
    result.subsection(f"Within each {name}")
    result.text(
        f"How closely the throughput follows each feature among the transfers of one {name}: rank "
        "correlation, from -1 to 1. The first line is the range of their throughput in Mbit/s."
    )
    features = [one.feature for one in subject.importances]
    features.sort(key=lambda feature: -float(np.median([abs(one.correlations[feature] or 0.0) for one in groups])))
    rows = [["throughput", *(f"{one.slowest_mbps:.3g} to {one.fastest_mbps:.3g}" for one in groups)]]
    rows += [[feature.label, *(_signed(one.correlations[feature]) for one in groups)] for feature in features]
    result.table(Table(["", *(one.group for one in groups)], rows, frozenset(range(1, len(groups) + 1))))
    if len(subject.within) > len(groups):
        result.text(f"The first {len(groups)} of {len(subject.within)} groups.")


def _selection(result: Page, subject: Subject, selection: Selection, picture: Picture) -> None:
    names = subject.throughputs.names
    result.subsection(_SELECTIONS[selection.name])
    result.figure(
        f"Decision tree of {leaves(selection.tree)} leaves",
        picture.to_inline_svg(),
        f"The first {LEVELS} questions; a dashed box summarizes the subtree below it."
        if depth(selection.tree) > LEVELS
        else "",
    )
    text = to_text(selection.tree, selection.features, names)
    result.details(
        "The whole tree as text",
        lambda page: page.text("In brackets: rows, and those of another class.").preformatted(text),
    )
    result.details("Confusion matrix", lambda page: page.table(_confusion(selection.confusion, names)))


def _confusion(confusion: Confusion, names: tuple[str, ...]) -> Table:
    rows = [[name, *map(str, row)] for name, row in zip(names, confusion.counts, strict=True)]
    return Table(["class, taken for", *names], rows, frozenset(range(1, len(names) + 1)))


def _method(result: Page, report: Report) -> None:
    options, settings = report.options, report.options.settings
    pruned = (
        "not pruned"
        if settings.confidence is None
        else f"pruned by the errors to be expected at a confidence of {settings.confidence:g}"
    )
    chosen = {
        "gain": "the highest information gain",
        "gain-ratio": "the highest gain ratio of those whose information gain is at least average",
    }[settings.criterion]
    result.section("How")
    result.text(
        f"Each question is the one with {chosen}; each answer has {settings.smallest_side} rows or more; the tree is "
        f"{pruned}. Cross-validation has {options.folds} parts, stratified by class, drawn with seed {options.seed}."
    )
    result.text(
        "The mean inter-packet time is the throughput in another unit, packets of one size over time, so that a tree "
        "of all features begins with it and explains little. The second trees do without it."
    )
    if report.skipped:
        result.text(f"{report.skipped:,} rows are excluded: their runs failed, or they lack a value.")


def _root(selection: Selection) -> str:
    tree = selection.tree
    return "none" if isinstance(tree, Leaf) else selection.features[tree.feature].label


def _signed(rho: float | None) -> str:
    return "-" if rho is None else f"{rho:+.2f}".replace("-", "\N{MINUS SIGN}")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _interval(confusion: Confusion) -> str:
    low, high = (100 * end for end in confusion.interval)
    return f"{low:.1f} to {high:.1f}"
