"""Self-contained HTML pages: no network, no scripts, no other files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from typing import Self

from marline.pages.sheet import style_sheet
from marline.text import printable

UNLISTED_SECTIONS = 3
"""Pages with more sections than this begin with a table of contents."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of short cells; the columns of ``numbers`` are aligned at their right ends."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()

    def to_html(self) -> str:
        """The table in a box that scrolls sideways where the screen is narrow."""
        head = "".join(f"<th{self._attribute(at)}>{escape(cell)}</th>" for at, cell in enumerate(self.header))
        body = "".join(f"<tr>{self._cells(row)}</tr>\n" for row in self.rows)
        return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n'

    def _cells(self, row: Sequence[str]) -> str:
        return "".join(f"<td{self._attribute(at)}>{escape(cell)}</td>" for at, cell in enumerate(row))

    def _attribute(self, at: int) -> str:
        return ' class="number"' if at in self.numbers else ' style="white-space:nowrap"'


class Page:
    """A page under construction. Elements are shown in the order in which they are added; all text is escaped."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._before = [f"<h1>{escape(title)}</h1>\n"]
        self._sections: list[str] = []
        self._body: list[str] = []

    def answer(self, text: str) -> Self:
        """Add the answer of the page in one sentence; belongs directly below the title."""
        return self._add(f'<p class="answer">{escape(text)}</p>\n')

    def lead(self, text: str) -> Self:
        """Add an introductory line."""
        return self._add(f'<p class="lead">{escape(text)}</p>\n')

    def facts(self, facts: Iterable[tuple[str, str]]) -> Self:
        """Add key figures in large print, by name."""
        items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
        return self._add(f'<dl class="facts">{items}</dl>\n')

    def section(self, title: str) -> Self:
        """Begin a section."""
        self._sections.append(title)
        return self._add(f'<h2 id="section-{len(self._sections)}">{escape(title)}</h2>\n')

    def subsection(self, title: str) -> Self:
        """Begin a subsection."""
        return self._add(f"<h3>{escape(title)}</h3>\n")

    def text(self, text: str) -> Self:
        """Add a paragraph."""
        return self._add(f"<p>{escape(text)}</p>\n")

    def table(self, table: Table) -> Self:
        """Add a table."""
        return self._add(table.to_html())

    def figure(self, caption: str, svg: str, note: str = "") -> Self:
        """Add a picture; ``svg`` is markup of our own."""
        small = f'<p class="note">{escape(note)}</p>\n' if note else ""
        return self._add(
            f'<figure><figcaption>{escape(caption)}</figcaption>\n{small}<div class="scroll">{svg}</div></figure>\n'
        )

    def preformatted(self, text: str) -> Self:
        """Add text with its lines and its indentation."""
        return self._add(f'<div class="scroll"><pre>{escape(text)}</pre></div>\n')

    def details(self, summary: str, inside: Callable[[Self], Self]) -> Self:
        """Add a collapsed block with the content that ``inside`` adds."""
        inside(self._add(f"<details><summary>{escape(summary)}</summary>\n"))
        return self._add("</details>\n")

    def footer(self, entries: Iterable[tuple[str, str]]) -> Self:
        """Add the provenance of the page, by name; belongs to the end."""
        items = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>" for name, value in entries)
        return self._add(f"<footer><dl>{items}</dl></footer>\n")

    def render(self) -> str:
        """The complete page."""
        title, before, body = escape(self._title), "".join(self._before), "".join(self._body)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f"<title>{title}</title>\n<style>\n{style_sheet()}</style>\n</head>\n"
            f"<body>\n<main>\n{before}{self._contents()}{body}</main>\n</body>\n</html>\n"
        )

    def _add(self, html: str) -> Self:
        (self._body if self._sections else self._before).append(html)
        return self

    def _contents(self) -> str:
        if len(self._sections) <= UNLISTED_SECTIONS:
            return ""
        items = "".join(
            f'<li><a href="#section-{at}">{escape(title)}</a></li>' for at, title in enumerate(self._sections, start=1)
        )
        return f'<nav aria-label="Contents"><ol>{items}</ol></nav>\n'


def escape(text: str) -> str:
    """Text escaped for HTML."""
    return escape_html(printable(text))
