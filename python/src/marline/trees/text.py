"""A tree as text."""

from collections.abc import Sequence
from typing import Protocol

from marline.trees.nodes import Leaf, Node, majority


class Shown(Protocol):
    """The text of a feature for readers."""

    @property
    def label(self) -> str:
        """Its name."""

    def show(self, value: float, /) -> str:
        """A value with its unit."""


def to_text(node: Node, features: Sequence[Shown], classes: Sequence[str]) -> str:
    """The tree, a line a question, with its class, its rows, and those that are of another class."""
    return "\n".join(_lines(node, features, classes, "")) + "\n"


def _lines(node: Node, features: Sequence[Shown], classes: Sequence[str], indent: str) -> list[str]:
    if isinstance(node, Leaf):
        return [indent + _verdict(node, classes)]
    feature = features[node.feature]
    lines = []
    for sign, branch in (("≤", node.low), (">", node.high)):
        question = f"{indent}{feature.label} {sign} {feature.show(node.threshold)}"
        if isinstance(branch, Leaf):
            lines.append(f"{question}: {_verdict(branch, classes)}")
        else:
            lines.append(question)
            lines += _lines(branch, features, classes, f"{indent}|   ")
    return lines


def _verdict(leaf: Leaf, classes: Sequence[str]) -> str:
    at = majority(leaf.counts)
    rows = sum(leaf.counts)
    wrong = rows - leaf.counts[at]
    return f"{classes[at]} ({rows}/{wrong})" if wrong else f"{classes[at]} ({rows})"
