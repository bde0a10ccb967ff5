"""Makes one page of pictures of all experiments: target/book/gallery/index.html, a part of the book.

    tools/gallery.py [RESULTS]

Each picture is of the committed results (docs/results), and leads to the section of the book that has them. Experiments
that were run here, in RESULTS (the directory of `make experiments`, lab-results without a name), have the first picture
of their report instead, and lead to the report, without the runs over time and the copies of pictures for downloading,
which are most of its bytes. Fails if all of it has more than 30 MB.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import statistics
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import book

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "book" / "gallery"
COMMITTED = ROOT / "docs" / "results"
STYLE_OF_REPORTS = ROOT / "crates" / "marline-report" / "src" / "html" / "style.css"
PATTERNS = STYLE_OF_REPORTS.with_name("patterns.svg")
# Bytes of everything together.
LARGEST = 30_000_000

# The folders of experiments, in the order of the page.
SUBJECTS = {
    "default": "The default",
    "combine": "The systems on top of it",
    "web": "Pages, browsers and other servers",
    "bundle": "Bundles of connections",
    "history": "What earlier connections teach",
    "wifi": "Wi-Fi",
    "pipes": "Pools of connections",
    "multipath": "Several paths",
    "demo": "A phone",
    "lab": "The laboratory itself",
}

STYLE = """
main { max-width: 80rem; }
.cards { display: grid; gap: 1.25rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); }
.card { display: flex; flex-direction: column; padding: 1rem; color: inherit; text-decoration: none;
  background: var(--paper); border: 1px solid var(--rule); border-radius: 0.5rem; }
.card:hover, .card:focus-visible { border-color: var(--s0); }
.card .chart { min-width: 0; max-height: 15rem; }
.card h3 { margin: 0 0 0.6rem; font-size: 1rem; line-height: 1.3; text-wrap: balance; }
.card .glance { margin: 0 0 0.4rem; }
.card .glance figcaption { font-size: 0.8rem; font-weight: 400; color: var(--quiet); }
.card .glance dl { font-size: 0.8rem; grid-template-columns: minmax(max-content, 4rem) 1fr; }
.card .glance dd span { width: calc((100% - 5.5rem) * var(--share)); height: 0.8rem; }
.card .key { margin: 0 0 0.4rem; font-size: 0.72rem; }
.card p { margin: auto 0 0; padding-top: 0.6rem; font-size: 0.85rem; line-height: 1.4; color: var(--quiet);
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
"""


# Suffixes of the names of metrics, and their units.
UNITS = {"_s": "s", "_ms": "ms", "_us": "µs", "_mbps": "Mb/s", "_bytes": "B", "_percent": "%", "_ratio": "", "": ""}
# Bars of a card; of more variants the first are shown.
MOST_BARS = 8


@dataclass
class Card:
    """What the page shows of an experiment."""

    # As `bundle/ablation`.
    experiment: str
    title: str
    # A sentence or two.
    answer: str
    # HTML.
    picture: str
    # The address it leads to, from the page.
    target: str

    def html(self) -> str:
        """Its picture and its line, which lead to it."""
        return f'<a class="card" href="{self.target}"><h3>{self.title}</h3>{self.picture}<p>{self.answer}</p></a>\n'


def shortened(page: str) -> str:
    """A report without the runs over time and without copies of its pictures."""
    page = re.sub(r'<p class="save">.*?</p>', "", page, flags=re.DOTALL)
    over_time = re.compile(r'<h2 id="(section-\d+)">Single runs over time</h2>.*?(?=<h2 |<footer)', re.DOTALL)
    for found in over_time.finditer(page):
        page = re.sub(rf'<li><a href="#{found[1]}">.*?</li>', "", page)
    return over_time.sub("", page)


def reported(directory: Path) -> Card | None:
    """The card of a run with a report, whose page is written beside that of the cards; `None` without one."""
    file = directory / "report.html"
    if not file.exists():
        return None
    page = shortened(file.read_text())
    experiment = json.loads((directory / "results.json").read_text())["experiment"]
    title = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    answer = re.search(r'<p class="(?:gain|answer|lead)">(.*?)</p>', page, re.DOTALL)
    figure = re.search(r"<figure.*?</figure>", page, re.DOTALL)
    picture = figure[0] if figure else ""
    if 'class="glance"' not in picture:
        parts = (r'<ul class="key">.*?</ul>', r'<svg class="chart".*?</svg>')
        picture = "".join(found[0] for part in parts if (found := re.search(part, picture, re.DOTALL)))
    name = experiment.replace("/", "-") + ".html"
    (OUT / name).write_text(page)
    return Card(
        experiment=experiment,
        title=title[1] if title else html.escape(experiment),
        answer=answer[1] if answer else "",
        picture=picture,
        target=name,
    )


def bars(results: dict[str, Any], metrics: list[str]) -> str:
    """The values of each variant, of the first metric that has some: medians over the points that all variants have."""
    values = results["values"]
    keys = [key for variant in values.values() for key in variant]
    keys.sort(key=lambda key: metrics.index(key.split()[0]) if key.split()[0] in metrics else len(metrics))
    compared = [key for key in keys if keys.count(key) > 1] or keys
    for key in compared:
        columns = {name: variant[key] for name, variant in values.items() if key in variant}
        metric, statistic = key.rsplit(" ", 1)
        suffix = next(suffix for suffix in UNITS if metric.endswith(suffix))
        name = metric.removesuffix(suffix).replace("_", " ")
        if picture := medians(f"{name}, {statistic}", columns, UNITS[suffix]):
            return picture
    # Only gains are kept of some: the first of each three, the others are its interval.
    gains = {key: [gain and gain[0] for gain in column] for key, column in results.get("gains", {}).items()}
    of = next(iter(gains), "").partition(", ")[2]
    columns = {key.partition(", ")[0]: column for key, column in gains.items() if key.partition(", ")[2] == of}
    return medians("gain", columns, "%")


def medians(what: str, columns: dict[str, list[float | None]], unit: str) -> str:
    """A bar for each column: its median over the points that all columns have; nothing if there is no such point."""
    rows = zip(*columns.values(), strict=True)
    points = [row for row in rows if all(isinstance(value, int | float) for value in row)]
    if not points:
        return ""
    shown = dict(zip(columns, map(statistics.median, zip(*points, strict=True)), strict=True))
    longest = max(*map(abs, shown.values()), 1e-12)
    bars = "".join(
        f'<dt>{html.escape(name)}</dt><dd><span style="--share:{abs(value) / longest:.4f};background:var(--s0)"></span>'
        f"{value:.3g} {unit}</dd>"
        for name, value in list(shown.items())[:MOST_BARS]
    )
    of = f" of {len(points)} points" if len(points) > 1 else ""
    return f'<figure class="glance"><figcaption>{html.escape(what)}{of}</figcaption><dl>{bars}</dl></figure>'


def sections() -> dict[str, str]:
    """The page and the anchor in the book at which each experiment is first shown."""
    found: dict[str, str] = {}
    for template in sorted(book.TEMPLATES.glob("*.md")):
        anchor = ""
        for line in template.read_text().splitlines():
            if heading := re.match(r"#{2,} +(.*)", line):
                anchor = "#" + "".join(
                    c.lower() if c.isalnum() or c in "_-" else "-" if c == " " else "" for c in heading[1]
                )
            elif shown := re.match(r'results = "(.*)"', line):
                found.setdefault(shown[1], f"../{template.stem}.html{anchor}")
    return found


def committed(file: Path, places: dict[str, str]) -> Card:
    """The card of committed results."""
    results = json.loads(file.read_text())
    experiment = results["experiment"]
    described = tomllib.loads((ROOT / "experiments" / f"{experiment}.toml").read_text())
    shows = " ".join(described.get("shows", "").split()).replace("`", "")
    answer = shows.split(". ")[0].rstrip(".") + "."
    claims = results["claims"]
    if claims:
        # Without a verdict by intervals, the values themselves decide.
        held = sum(
            claim["verdict"] == "holds" or (claim["verdict"] is None and claim["met"] >= claim["needed"])
            for claim in claims
        )
        answer += f" {held} of {len(claims)} claims hold."
    return Card(
        experiment=experiment,
        title=html.escape(described["title"]),
        answer=html.escape(answer),
        picture=bars(results, described.get("metrics", [])),
        target=places.get(experiment, "../results.html"),
    )


def main() -> None:
    """Makes the page, in a folder that is emptied first."""
    runs = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "lab-results")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    places = sections()
    cards = {card.experiment: card for file in sorted(COMMITTED.rglob("*.json")) for card in [committed(file, places)]}
    if runs.is_dir():
        ran = [card for directory in sorted(runs.iterdir()) if directory.is_dir() and (card := reported(directory))]
        cards |= {card.experiment: card for card in ran}
    body = ""
    others = {name.split("/")[0] for name in cards} - set(SUBJECTS)
    for subject in [*SUBJECTS, *sorted(others)]:
        each = [card.html() for name, card in sorted(cards.items()) if name.split("/")[0] == subject]
        if each:
            name = SUBJECTS.get(subject, subject)
            body += f'<h2 id="{subject}">{html.escape(name)}</h2>\n<div class="cards">\n{"".join(each)}</div>\n'
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>marline in pictures</title>\n'
        f"<style>{STYLE_OF_REPORTS.read_text()}{STYLE}</style>\n</head>\n<body>\n{PATTERNS.read_text()}\n"
        "<main>\n<h1>marline in pictures</h1>\n"
        f'<p class="lead">{len(cards)} experiments. Each picture leads to what was found, with all values. '
        '<a href="../index.html">The book</a></p>\n'
        f"{body}</main>\n</body>\n</html>\n"
    )
    (OUT / "index.html").write_text(page)
    size = sum(file.stat().st_size for file in OUT.iterdir())
    print(f"{OUT.relative_to(ROOT) / 'index.html'}: {len(cards)} experiments, {size / 1e6:.1f} MB")
    if size > LARGEST:
        sys.exit(f"more than {LARGEST / 1e6:.0f} MB, too much for a page that is published")


if __name__ == "__main__":
    main()
