"""Makes one page of pictures of the reports of experiments: target/gallery/index.html, ready to publish.

    tools/gallery.py [RESULTS]    the directory of `make experiments`, lab-results without a name

Each picture is the first one of a report, and leads to it. The reports lie beside the page, without the runs over time
and the copies of pictures for downloading, which are most of their bytes. Fails if all of it has more than 30 MB.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "gallery"
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
.card .key { margin: 0 0 0.4rem; font-size: 0.72rem; }
.card p { margin: auto 0 0; padding-top: 0.6rem; font-size: 0.85rem; line-height: 1.4; color: var(--quiet);
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
"""


@dataclass
class Report:
    """What the page shows of a report."""

    # As `bundle/ablation`.
    experiment: str
    title: str
    # A sentence or two.
    answer: str
    # The first picture, with its key.
    picture: str

    @property
    def file(self) -> str:
        """The name of its page in the gallery."""
        return self.experiment.replace("/", "-") + ".html"

    def card(self) -> str:
        """Its picture and its line, which lead to it."""
        return f'<a class="card" href="{self.file}"><h3>{self.title}</h3>{self.picture}<p>{self.answer}</p></a>\n'


def shortened(page: str) -> str:
    """A report without the runs over time and without copies of its pictures."""
    page = re.sub(r'<p class="save">.*?</p>', "", page, flags=re.DOTALL)
    over_time = re.compile(r'<h2 id="(section-\d+)">Single runs over time</h2>.*?(?=<h2 |<footer)', re.DOTALL)
    for found in over_time.finditer(page):
        page = re.sub(rf'<li><a href="#{found[1]}">.*?</li>', "", page)
    return over_time.sub("", page)


def read(directory: Path) -> tuple[Report, str] | None:
    """The report of a directory of results, and its shortened page; `None` without one."""
    file = directory / "report.html"
    if not file.exists():
        return None
    page = shortened(file.read_text())
    experiment = json.loads((directory / "results.json").read_text())["experiment"]
    title = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    answer = re.search(r'<p class="(?:answer|lead)">(.*?)</p>', page, re.DOTALL)
    figure = re.search(r"<figure>.*?</figure>", page, re.DOTALL)
    key, chart = "", ""
    if figure:
        found = re.search(r'<ul class="key">.*?</ul>', figure[0], re.DOTALL)
        key = found[0] if found else ""
        found = re.search(r'<svg class="chart".*?</svg>', figure[0], re.DOTALL)
        chart = found[0] if found else ""
    report = Report(
        experiment=experiment,
        title=title[1] if title else html.escape(experiment),
        answer=answer[1] if answer else "",
        picture=key + chart,
    )
    return report, page


def main() -> None:
    """Makes the page, in a folder that is emptied first."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "lab-results")
    directories = sorted(results.iterdir()) if results.is_dir() else []
    found = [known for directory in directories if directory.is_dir() and (known := read(directory))]
    if not found:
        sys.exit(f"{results} has no reports: `make experiments` makes all, `marline lab run ID` one")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    first = found[0][1]
    head = re.search(r"<style>(.*?)</style>", first, re.DOTALL)
    patterns = re.search(r"<body>\s*(<svg.*?</svg>)", first, re.DOTALL)
    if not head or not patterns:
        sys.exit(f"{found[0][0].experiment}: its report is of another version; `marline lab report` makes it again")
    body = ""
    subjects = SUBJECTS | {report.experiment.split("/")[0]: report.experiment.split("/")[0] for report, _ in found}
    for subject in subjects:
        cards = [report.card() for report, _ in found if report.experiment.split("/")[0] == subject]
        if cards:
            name = SUBJECTS.get(subject, subject)
            body += f'<h2 id="{subject}">{html.escape(name)}</h2>\n<div class="cards">\n{"".join(cards)}</div>\n'
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>marline in pictures</title>\n'
        f"<style>{head[1]}{STYLE}</style>\n</head>\n<body>\n{patterns[1]}\n<main>\n<h1>marline in pictures</h1>\n"
        f'<p class="lead">{len(found)} experiments. Each picture leads to its report.</p>\n'
        f"{body}</main>\n</body>\n</html>\n"
    )
    (OUT / "index.html").write_text(page)
    for report, text in found:
        (OUT / report.file).write_text(text)
    size = sum(file.stat().st_size for file in OUT.iterdir())
    print(f"{OUT.relative_to(ROOT) / 'index.html'}: {len(found)} reports, {size / 1e6:.1f} MB")
    if size > LARGEST:
        sys.exit(f"more than {LARGEST / 1e6:.0f} MB, too much for a page that is published")


if __name__ == "__main__":
    main()
