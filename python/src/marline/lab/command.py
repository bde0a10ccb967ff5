"""``python -m marline figures``."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from marline.arguments import number
from marline.errors import OptionError
from marline.lab.figures import Paper, PaperFigure
from marline.lab.results import Results
from marline.output import MISSING_DIRECTORIES, require_directory

if TYPE_CHECKING:
    from collections.abc import Callable


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "figures",
        help="figures of results of the laboratory, for papers",
        description="Draw the figures of a report as vector files: boxes, distributions, improvements, runs over time.",
    )
    parser.add_argument("results", type=Path, metavar="DIR", help="a directory of `marline lab run`")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="DIR", help=f"where they are written; {MISSING_DIRECTORIES}"
    )
    parser.add_argument("--metric", metavar="NAME", help="the metric (the first of the experiment)")
    parser.add_argument("--width", type=number, default=3.33, metavar="INCHES", help="of a column (3.33)")
    parser.add_argument("--font", type=number, default=8.0, metavar="POINTS", help="the size of the text (8)")
    parser.add_argument("--format", default="pdf", choices=["pdf", "svg", "eps", "pgf", "png"], help="(pdf)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Draw and write. Raises :class:`marline.MarlineError`."""
    paper = Paper(width_in=arguments.width, font_pt=arguments.font)
    results = Results.open(arguments.results)
    metric = arguments.metric
    drawings: dict[str, Callable[[], PaperFigure]] = {
        "boxes": partial(results.boxes, metric, paper=paper),
        "distribution": partial(results.distribution, metric, paper=paper),
        "improvements": partial(results.improvements, metric, paper=paper),
    }
    for at, point in enumerate(results.points if len(results.points) > 1 else []):
        drawings[f"distribution-{at}"] = partial(results.distribution, metric, where=point, paper=paper)
    for variant in results.variants:
        drawings[f"time-{variant}"] = partial(results.over_time, variant, paper=paper)
    require_directory(arguments.out)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, draw in drawings.items():
        try:
            figure = draw()
        except OptionError as error:
            # Not every experiment compares variants or has time series.
            if name in {"boxes", "distribution"}:
                raise
            sys.stderr.write(f"no {name}: {error}\n")
            continue
        safe = "".join(letter if letter.isalnum() or letter == "-" else "-" for letter in name)
        path = figure.save(arguments.out / f"{safe}.{arguments.format}")
        sys.stdout.write(f"{path}\n")
