"""Names that others chose, in what is printed, drawn and written: shown, and interpreted by nothing."""

import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import duckdb
import pytest

from flows import write_labelled
from marline.cli import main
from marline.pages import Page, Table
from marline.text import printable, short
from runs import table, write

NAMES = (
    "<script>alert(1)</script>.example",
    "a&b.example",
    "\"'><b>.example",
    "]]>--><!--.example",
    "x" * 250,
    "a\0b.example",
    "a\x0bb.example",
    "a\nb.example",
    "\x1b[31mred.example",
    "\N{RIGHT-TO-LEFT OVERRIDE}elpmaxe",
    "\N{ZERO WIDTH SPACE}.example",
    "\N{BYTE ORDER MARK}\ufffe.example",
    "\N{CJK UNIFIED IDEOGRAPH-65E5}.example",
    r"$\frac{1}{0}$.example",
)


def obeyed_by_no_terminal(shown: str) -> None:
    assert not set(shown) & {"\0", "\x0b", "\x1b", "\N{RIGHT-TO-LEFT OVERRIDE}", "\ufffe"}


def harmless(shown: str) -> None:
    obeyed_by_no_terminal(shown)
    assert "<script>" not in shown
    assert "<b>" not in shown


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("names")
    every, named = write_labelled(directory / "every.parquet", 1400), directory / "<b>&named.parquet"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE names (place INTEGER, name VARCHAR)")
    connection.executemany("INSERT INTO names VALUES (?, ?)", list(enumerate(NAMES)))
    connection.execute(
        f"COPY (SELECT flow.* REPLACE (name AS sni) FROM '{every}' flow JOIN names ON place = client_port % "
        f"{len(NAMES)}) TO '{named}' (FORMAT PARQUET)"
    )
    return named


@pytest.mark.parametrize(
    "verb", [["characterise", "--services", "20"], ["classify", "evaluate", "--algorithm", "bayesnet", "--folds", "2"]]
)
def test_names_of_servers_are_shown_in_pages_and_pictures(
    verb: list[str], flows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, str(flows), "-o", str(tmp_path)]) == 0
    obeyed_by_no_terminal(capsys.readouterr().out)
    page = (tmp_path / "report.html").read_text()
    harmless(page)
    assert "&lt;script&gt;" in page
    assert "\N{CJK UNIFIED IDEOGRAPH-65E5}" in page
    for picture in tmp_path.glob("*.svg"):
        xml.dom.minidom.parse(str(picture))


def test_names_in_a_table_of_transfers_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "runs.csv", table(120, ("<b>\x1b[31mx", "quic")))
    assert main(["determinants", str(path), "--folds", "2", "-o", str(tmp_path / "out")]) == 0
    obeyed_by_no_terminal(capsys.readouterr().out)
    harmless((tmp_path / "out" / "report.html").read_text())
    path.write_text("\x1b[31mred,b\n1,2\n")
    assert main(["determinants", str(path), "--group", "site"]) == 1
    told = capsys.readouterr().err
    obeyed_by_no_terminal(told)
    assert r"\x1b[31mred" in told


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_a_page_is_escaped(name: str) -> None:
    page = Page(name).answer(name).lead(name).facts([(name, name)]).section(name).subsection(name).text(name)
    page.table(Table([name], [[name]])).figure(name, "<svg></svg>", name).preformatted(name)
    harmless(page.details(name, lambda inside: inside.text(name)).footer([(name, name)]).render())


def test_a_name_in_a_line_is_short_and_printable() -> None:
    for name in NAMES:
        assert short(name).isprintable()
        assert len(short(name)) <= 64
    assert short("name.example") == "name.example"
    assert printable("a\n\tb\0") == "a\n\tb\\x00"


def test_a_name_of_a_file_that_is_not_of_the_encoding_stops_nothing(tmp_path: Path) -> None:
    flows = write_labelled(tmp_path / "flows.parquet", 200)
    model = tmp_path / "m\udcff\N{CJK UNIFIED IDEOGRAPH-65E5}"
    command: list[str] = [
        sys.executable,
        "-m",
        "marline",
        "classify",
        "train",
        str(flows),
        "-o",
        str(model),
        "--algorithm",
        "c45",
    ]
    done = subprocess.run(command, env={"PYTHONIOENCODING": "latin-1"}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"m\\udcff\\u65e5\n")
    flows.rename(tmp_path / "f\udcff.parquet")
    command = [sys.executable, "-m", "marline", "sessions", "f\udcff.parquet", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"its name is not in UTF-8, and must be" in done.stderr
