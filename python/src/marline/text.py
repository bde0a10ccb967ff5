"""External text, such as names in handshakes, made safe to show."""

import re
from typing import Final

LONGEST: Final = 64
"""Characters of a name in a picture or a table: names of hosts have up to 253."""

_KEPT: Final = "\n\t"


def printable(text: str) -> str:
    """The text with escapes for what a terminal or a page would interpret: controls, directions, surrogates."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in _KEPT else _escaped(one) for one in text)


def short(name: str) -> str:
    """A name in one line, with its middle elided if it is long."""
    name = re.sub(r"[\n\t]", lambda one: _escaped(one[0]), printable(name))
    half = LONGEST // 2 - 1
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}"


def _escaped(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
