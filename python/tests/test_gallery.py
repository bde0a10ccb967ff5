"""The page of pictures of ``tools/gallery.py``."""

import json
import re
from pathlib import Path

import pytest

import gallery

PAGE = """<html><head><style>:root { --paper: white; }</style></head>
<body>
<svg width="0"><defs></defs></svg>
<main>
<h1>Two &amp; one</h1>
<p class="answer">Two is faster.</p>
<nav><ol><li><a href="#section-1">Times</a></li><li><a href="#section-2">Single runs over time</a></li></ol></nav>
<h2 id="section-1">Times</h2>
<figure><ul class="key"><li>two</li></ul><div><svg class="chart"><path d="M0 0"/></svg></div>
<p class="save">copy</p></figure>
<h2 id="section-2">Single runs over time</h2>
<p>long</p>
<footer>seed</footer>
</main></body></html>
"""


def result(results: Path, experiment: str, page: str = PAGE) -> None:
    """A directory of results."""
    directory = results / experiment.replace("/", "-")
    directory.mkdir(parents=True)
    (directory / "report.html").write_text(page)
    (directory / "results.json").write_text(json.dumps({"experiment": experiment}))


def made(results: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page about these results."""
    monkeypatch.setattr(gallery, "ROOT", out)
    monkeypatch.setattr(gallery, "OUT", out / "gallery")
    monkeypatch.setattr(gallery, "COMMITTED", out / "committed")
    monkeypatch.setattr("sys.argv", ["gallery.py", str(results)])
    gallery.main()
    return (out / "gallery" / "index.html").read_text()


def test_each_report_has_a_card_that_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(tmp_path / "results", "bundle/one")
    result(tmp_path / "results", "default/two")
    result(tmp_path / "results", "own/three")
    page = made(tmp_path / "results", tmp_path, monkeypatch)
    links = re.findall(r'<a class="card" href="(.*?)"><h3>Two &amp; one</h3>.*?<svg class="chart">', page)
    assert links == ["default-two.html", "bundle-one.html", "own-three.html"]
    assert "3 experiments" in page
    assert all((tmp_path / "gallery" / link).exists() for link in links)


def test_reports_lie_there_without_runs_over_time_and_copies_of_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(tmp_path / "results", "bundle/one")
    made(tmp_path / "results", tmp_path, monkeypatch)
    report = (tmp_path / "gallery" / "bundle-one.html").read_text()
    assert '<li><a href="#section-1">Times</a></li></ol>' in report
    assert "<footer>seed</footer>" in report
    assert not re.search("over time|long|copy", report)


def test_a_page_that_is_too_large_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(tmp_path / "results", "bundle/one", PAGE + " " * gallery.LARGEST)
    with pytest.raises(SystemExit, match="more than 30 MB"):
        made(tmp_path / "results", tmp_path, monkeypatch)


def test_committed_results_have_a_card_that_leads_to_their_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = tmp_path / "committed" / "bundle" / "one.json"
    committed.parent.mkdir(parents=True)
    values = {"slow": {"completion_s median": [1.0, None, 3.0]}, "fast": {"completion_s median": [0.5, 9.0, 1.5]}}
    claims = [{"verdict": "holds", "met": 2, "needed": 2}, {"verdict": None, "met": 1, "needed": 2}]
    points = [{"rtt": 1}, {"rtt": 2}, {"rtt": 3}]
    committed.write_text(json.dumps({"experiment": "bundle/one", "values": values, "claims": claims, "points": points}))
    described = tmp_path / "experiments" / "bundle" / "one.toml"
    described.parent.mkdir(parents=True)
    described.write_text('title = "One"\nshows = "One of two. More."\nmetrics = ["completion_s"]\n')
    monkeypatch.setattr(gallery, "sections", lambda: {"bundle/one": "../bundle-results.html#one"})
    page = made(tmp_path / "nothing", tmp_path, monkeypatch)
    assert '<a class="card" href="../bundle-results.html#one"><h3>One</h3>' in page
    assert "completion, median of 2 points" in page
    assert "</span>2 s</dd><dt>fast</dt>" in page
    assert "One of two. 1 of 2 claims hold." in page
