"""The files of an analysis: figures, trees as text, the report, the document."""

import json
import re

from marline.determinants.analysis import Report, Selection, Subject
from marline.determinants.document import to_json
from marline.determinants.page import Figures, page
from marline.figures import Bar, BarChart, Picture, draw_bars, draw_tree
from marline.trees import to_text


def render(report: Report) -> dict[str, bytes]:
    """The files by name: ``determinants.json``, ``report.html``, ``tree-*.txt``, and each figure as SVG and PNG."""
    names = _file_names(report)
    files = {"determinants.json": (json.dumps(to_json(report), indent=1) + "\n").encode()}
    figures: dict[str | None, Figures] = {}
    for subject in report.subjects:
        name = names[subject.name]
        trees = {}
        for selection in subject.selections:
            stem = f"tree-{name}" if selection.name == "all" else f"tree-{name}-{selection.name.replace('_', '-')}"
            trees[selection.name] = draw_tree(stem, selection.tree, selection.features, subject.throughputs.names)
            files[f"{stem}.txt"] = tree_text(subject, selection).encode()
        gains = _gains(f"gains-{name}", subject)
        for picture in (*trees.values(), gains):
            files[f"{picture.name}.svg"] = picture.to_svg().encode()
            files[f"{picture.name}.png"] = picture.to_png()
        figures[subject.name] = Figures(trees, gains)
    files["report.html"] = page(report, figures).encode()
    return files


def tree_text(subject: Subject, selection: Selection) -> str:
    """A tree as text; in brackets the rows of a leaf, and those of another class."""
    return to_text(selection.tree, selection.features, subject.throughputs.names)


def _gains(name: str, subject: Subject) -> Picture:
    return draw_bars(
        name,
        BarChart(
            bars=[Bar(one.feature.label, one.gain_bits, 100 * one.accuracy) for one in subject.importances],
            length_title="information gain of its best question, bit",
            point_title="accuracy of a tree of it alone, %",
            line=100 * subject.baseline,
            line_title="largest class",
        ),
    )


def _file_names(report: Report) -> dict[str | None, str]:
    """A name for files of each subject: as in the table if that is a valid file name, else its number."""
    names: dict[str | None, str] = {None: "all"}
    for at, subject in enumerate(report.subjects):
        if subject.name is not None:
            plain = re.fullmatch(r"(?![0-9]+$)[A-Za-z0-9][A-Za-z0-9_.]{0,40}", subject.name) and subject.name.lower()
            names[subject.name] = plain if plain and plain not in names.values() else f"{at}"
    return names
