"""``python -m marline classify``."""

import argparse
import json
import sys
from pathlib import Path

from marline.arguments import folds, parquet, seed, share
from marline.evaluation import Confusion
from marline.flows.classify.decision import DEFAULT_THRESHOLD
from marline.flows.classify.document import prediction_to_json, to_json
from marline.flows.classify.evaluation import Evaluation, evaluate
from marline.flows.classify.files import render
from marline.flows.classify.learners import ALGORITHMS, prepare
from marline.flows.classify.model import Model
from marline.flows.classify.options import Options
from marline.flows.classify.page import TITLES, better_rule
from marline.flows.classify.predict import UNKNOWN, Prediction, predict
from marline.flows.classify.sample import LeftOut, Sample
from marline.flows.features import FEATURE_SETS
from marline.output import MISSING_DIRECTORIES, Forms, OutputFile

_RECORDS = "a table of flows (Parquet, CSV), or records of Tstat or Zeek"


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "classify",
        help="which version of HTTP a flow carries, by the numbers of its record",
        description="Learn from labelled flows which version of HTTP others carry.",
        epilog="example: python -m marline classify evaluate june.parquet --test july.parquet -o evaluation",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    train = actions.add_parser("train", help="learn from labelled flows, and write a model")
    train.add_argument("flows", type=Path, metavar="FILE", help=f"{_RECORDS}, with labels")
    train.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="MODEL",
        required=True,
        help=f"where the model is written; {MISSING_DIRECTORIES}",
    )
    _add_features(train)
    train.add_argument("--algorithm", choices=list(ALGORITHMS), default="random_forest", help="(random_forest)")
    train.add_argument("--seed", type=seed, default=1, metavar="N", help="seed of all random draws (1)")
    train.set_defaults(run=_train)

    use = actions.add_parser("predict", help="classify flows by a model")
    use.add_argument("model", type=Path, metavar="MODEL", help="of `classify train`")
    use.add_argument("flows", type=Path, metavar="FILE", help=f"{_RECORDS}, or nfdump's CSV; may be larger than memory")
    use.add_argument(
        "-o",
        "--out",
        type=parquet,
        metavar="FILE.parquet",
        required=True,
        help=f"the flows, with `predicted`; {MISSING_DIRECTORIES}",
    )
    use.add_argument(
        "--threshold",
        type=share,
        default=DEFAULT_THRESHOLD,
        metavar="P",
        help=f"flows whose version is less probable are unknown ({DEFAULT_THRESHOLD})",
    )
    use.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    use.set_defaults(run=_predict)

    judge = actions.add_parser("evaluate", help="cross-validate the algorithms on labelled flows")
    judge.add_argument(
        "flows",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"{_RECORDS}, with labels; of several, each is held back as a whole, too",
    )
    Forms.add_options(judge)
    judge.add_argument(
        "--algorithm", action="append", choices=list(ALGORITHMS), help="only this one; can be repeated (all)"
    )
    judge.add_argument(
        "--test",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="labelled flows of another time or place; can be repeated",
    )
    _add_features(judge)
    judge.add_argument("--folds", type=folds, default=10, metavar="N", help="parts of the cross-validation (10)")
    judge.add_argument("--seed", type=seed, default=1, metavar="N", help="seed of all random draws (1)")
    judge.set_defaults(run=_evaluate)


def _add_features(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--features",
        choices=list(FEATURE_SETS),
        help="the seven numbers of the study alone (published), or the transport, too (transport, if records have it)",
    )


def _train(arguments: argparse.Namespace) -> None:
    out = OutputFile(arguments.out, arguments.flows)
    prepare([arguments.algorithm])
    model = Model.train(Sample.load(arguments.flows, features=arguments.features), arguments.algorithm, arguments.seed)
    model.save(out)
    sys.stdout.write(f"{model.flows:,} flows of {', '.join(model.names)}: {arguments.out}\n")


def _predict(arguments: argparse.Namespace) -> None:
    # Reading a forest takes seconds.
    OutputFile(arguments.out, arguments.flows, arguments.model)
    prediction = predict(Model.load(arguments.model), arguments.flows, arguments.out, arguments.threshold)
    if arguments.json:
        json.dump(prediction_to_json(prediction), sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(prediction_table(prediction))


def prediction_table(prediction: Prediction) -> str:
    """The classes in a line each, and a line of the flows that are of none."""
    whole = max(1, prediction.flows)
    counts = {**prediction.counts, UNKNOWN: prediction.unknown, "none": prediction.without}
    lines = [f"{name:8}{count:>14,}{100 * count / whole:>7.1f} %" for name, count in counts.items()]
    if prediction.unknown:
        lines.append(f"{prediction.unknown:,} flows are unknown: no version is as probable as {prediction.threshold:g}")
    if prediction.without:
        left_out = LeftOut(prediction.left_out)
        lines.append(f"{prediction.without:,} of {prediction.flows:,} flows have no prediction: {left_out}")
    return "\n".join(lines) + "\n"


def _evaluate(arguments: argparse.Namespace) -> None:
    algorithms = tuple(arguments.algorithm or ALGORITHMS)
    options = Options(algorithms, arguments.folds, arguments.seed, tuple(arguments.test), arguments.features)
    Forms(table, to_json, render).put_out(lambda: evaluate(arguments.flows, options), arguments)


def table(evaluation: Evaluation) -> str:
    """The algorithms in a line each."""
    groups = [name for name, confusion in evaluation.results[0].by_group.items() if confusion]
    lines = [f"{'':24}{'accuracy':>10}{'F':>9}{'kappa':>9}" + "".join(f"{f'by {name}':>11}" for name in groups)]
    lines[0] += "".join(f"{test.stem[:16]:>18}" for test in evaluation.options.tests)
    for result in evaluation.results:
        quality = result.confusion
        line = f"{TITLES[result.algorithm]:24}{100 * quality.accuracy:>8.1f} %{100 * quality.f_measure:>7.1f} %"
        line += f"{100 * quality.kappa:>7.1f} %"
        line += "".join(f"{_percent(result.by_group[name]):>11}" for name in groups)
        line += "".join(f"{_percent(test.confusion):>18}" for test in result.tests)
        lines.append(line)
    for one in evaluation.baselines:
        line = f"{one.text:24}{_percent(one.confusion):>10}{'':>{18 + 11 * len(groups)}}"
        lines.append(line + "".join(f"{_percent(test):>18}" for test in one.tests))
    warning = better_rule(evaluation)
    lines += [warning] if warning else []
    left_out = evaluation.sample.left_out
    lines += [f"{left_out.total:,} records are excluded: {left_out}"] if left_out.total else []
    return "\n".join(lines) + "\n"


def _percent(confusion: Confusion | None) -> str:
    return "-" if confusion is None else f"{100 * confusion.accuracy:.1f} %"
