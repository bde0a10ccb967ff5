"""The analysis as JSON."""

from collections.abc import Sequence

from marline.determinants.analysis import Report, Selection, Subject
from marline.evaluation import Confusion
from marline.json import Json
from marline.transfers.features import Feature
from marline.trees import Counts, Leaf, Node, depth, leaves, majority


def to_json(report: Report) -> dict[str, Json]:
    """The document of ``--json``; values have the units of the table."""
    options = report.options
    return {
        "source": report.source.name,
        "rows": report.rows,
        "rows_skipped": report.skipped,
        "class_mbps": options.class_mbps,
        "folds": options.folds,
        "seed": options.seed,
        "group": options.group,
        "criterion": options.settings.criterion.value,
        "confidence": options.settings.confidence,
        "subjects": [_subject(subject) for subject in report.subjects],
    }


def _subject(subject: Subject) -> dict[str, Json]:
    names = subject.throughputs.names
    return {
        "name": subject.name,
        "classes": _counts(subject.throughputs.counts, names),
        "entropy_bits": subject.entropy_bits,
        "baseline_percent": 100 * subject.baseline,
        "features": [
            {
                "feature": one.feature.column,
                "information_gain_bits": one.gain_bits,
                "threshold": one.threshold,
                "accuracy_percent": 100 * one.accuracy,
            }
            for one in subject.importances
        ],
        "within_groups": [
            {
                "group": one.group,
                "rows": one.rows,
                "goodput_mbps": [one.slowest_mbps, one.fastest_mbps],
                "rank_correlations": {feature.column: rho for feature, rho in one.correlations.items()},
            }
            for one in subject.within
        ],
        "trees": [_selection(selection, names) for selection in subject.selections],
    }


def _selection(selection: Selection, names: Sequence[str]) -> dict[str, Json]:
    tree = selection.tree
    return {
        "selection": selection.name,
        "features": [feature.column for feature in selection.features],
        "root": None if isinstance(tree, Leaf) else selection.features[tree.feature].column,
        "leaves": leaves(tree),
        "depth": depth(tree),
        **_accuracy(selection.confusion, ""),
        **({} if selection.held_back is None else _accuracy(selection.held_back, "group_")),
        "confusion": {
            name: _counts([int(count) for count in row], names)
            for name, row in zip(names, selection.confusion.counts, strict=True)
        },
        "tree": _node(tree, selection.features, names),
    }


def _accuracy(confusion: Confusion, prefix: str) -> dict[str, Json]:
    return {
        f"{prefix}accuracy_percent": 100 * confusion.accuracy,
        f"{prefix}accuracy_percent_ci95": [100 * end for end in confusion.interval],
    }


def _node(node: Node, features: Sequence[Feature], names: Sequence[str]) -> dict[str, Json]:
    if isinstance(node, Leaf):
        return {"class": names[majority(node.counts)], "classes": _counts(node.counts, names)}
    return {
        "feature": features[node.feature].column,
        "threshold": node.threshold,
        "information_gain_bits": node.gain_bits,
        "classes": _counts(node.counts, names),
        "at_most": _node(node.low, features, names),
        "above": _node(node.high, features, names),
    }


def _counts(counts: Counts | list[int], names: Sequence[str]) -> dict[str, Json]:
    return {name: count for name, count in zip(names, counts, strict=True) if count}
