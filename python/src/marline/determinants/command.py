"""``python -m marline determinants``."""

import argparse
from pathlib import Path

from marline.arguments import folds, number, seed
from marline.determinants.analysis import Report, Selection, analyse, label
from marline.determinants.document import to_json
from marline.determinants.files import render
from marline.determinants.options import Options
from marline.output import Forms
from marline.transfers.features import FEATURES
from marline.trees import Criterion, Leaf, Settings, leaves


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "determinants",
        help="what decides the throughput of transfers: a decision tree over their features",
        description="Grow decision trees (C4.5) that find the class of throughput of each transfer by its features.",
    )
    parser.add_argument(
        "runs",
        type=Path,
        metavar="RUNS",
        help="runs.csv of `marline lab run wifi/determinants`, or a table with its columns: CSV, TSV, JSON or Parquet",
    )
    Forms.add_options(parser)
    parser.add_argument("--by", default="variant", metavar="COLUMN", help="the protocols: one tree each (variant)")
    parser.add_argument("--group", metavar="COLUMN", help="hold back each value of this column as a whole, too: site")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="FEATURE",
        choices=[feature.column for feature in FEATURES],
        help="leave out a feature; can be repeated",
    )
    parser.add_argument(
        "--class-mbps", type=_positive, default=10.0, metavar="MBPS", help="width of a class of throughput (10)"
    )
    parser.add_argument("--folds", type=folds, default=10, metavar="N", help="parts of the cross-validation (10)")
    parser.add_argument("--seed", type=seed, default=1, metavar="N", help="which rows are of which part (1)")
    parser.add_argument(
        "--criterion",
        choices=[criterion.value for criterion in Criterion],
        default=Criterion.GAIN_RATIO.value,
        help="criterion that selects a question (gain-ratio, as in C4.5)",
    )
    parser.add_argument(
        "--confidence", type=_confidence, default=0.25, metavar="SHARE", help="of pruning: lower prunes more (0.25)"
    )
    parser.add_argument("--unpruned", action="store_true", help="keep all of the trees")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Analyse, write, print. Raises :class:`marline.MarlineError`."""
    confidence = None if arguments.unpruned else arguments.confidence
    options = Options(
        class_mbps=arguments.class_mbps,
        folds=arguments.folds,
        seed=arguments.seed,
        by=arguments.by,
        group=arguments.group,
        without=tuple(arguments.without),
        settings=Settings(criterion=Criterion(arguments.criterion), confidence=confidence),
    )
    Forms(table, to_json, render).put_out(lambda: analyse(arguments.runs, options, progress=True), arguments)


def table(report: Report) -> str:
    """The trees in a few lines."""
    lines = [["transfers of", "features", "rows", "root", "leaves", "accuracy"]]
    if report.options.group:
        lines[0].append(f"{report.options.group} held back")
    for subject in report.subjects:
        for selection in subject.selections:
            held = selection.held_back
            lines.append(
                [
                    label(subject, report.subjects),
                    selection.name.replace("_", " "),
                    str(selection.confusion.rows),
                    _root(selection),
                    str(leaves(selection.tree)),
                    f"{100 * selection.confusion.accuracy:.1f} %",
                    *([f"{100 * held.accuracy:.1f} %" if held else "-"] if report.options.group else []),
                ]
            )
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rows = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    skipped = (
        f"{report.skipped} rows were excluded: their runs failed, or they lack a value\n" if report.skipped else ""
    )
    return "\n".join(rows) + "\n" + skipped


def _root(selection: Selection) -> str:
    tree = selection.tree
    return "none" if isinstance(tree, Leaf) else selection.features[tree.feature].column


def _positive(text: str) -> float:
    value = number(text)
    if not 0.001 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be from 0.001 to 1000000, and is {text}")
    return value


def _confidence(text: str) -> float:
    value = number(text)
    if not 0 < value <= 0.5:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 0.5, and is {text}")
    return value
