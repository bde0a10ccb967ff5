"""The analysis, its files and its command."""

import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from marline.cli import main
from marline.determinants import Options, Report, analyse, to_json
from marline.determinants.files import render
from marline.determinants.throughputs import Throughputs
from marline.errors import (
    EmptyTableError,
    MissingColumnsError,
    NotANumberError,
    OptionError,
    OutputError,
    TooFewRowsError,
    TooManyClassesError,
)
from marline.output import write_all
from marline.progress import Progress
from marline.transfers import FEATURES, GOODPUT
from marline.trees import Split
from runs import table, write


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = write(tmp_path_factory.mktemp("runs") / "runs.csv", table())
    return analyse(path, Options(folds=5, group="site"))


@pytest.fixture(scope="module")
def files(report: Report) -> dict[str, bytes]:
    return render(report)


def test_throughputs_are_in_classes_named_by_their_lower_ends() -> None:
    classes = Throughputs.of(np.array([0.0, 9.99, 10.0, 35.0, 12.0]), 10.0)
    assert classes.names == ("t0", "t10", "t30")
    assert classes.classes.tolist() == [0, 0, 1, 2, 1]
    assert Throughputs.of(np.array([0.3, 0.1]), 0.25).names == ("t0", "t0.25")


def test_the_feature_that_decides_is_at_the_root_and_first_by_gain(report: Report) -> None:
    assert [subject.name for subject in report.subjects] == [None, "tcp", "quic"]
    for subject in report.subjects:
        for selection in subject.selections:
            assert isinstance(selection.tree, Split)
            assert selection.features[selection.tree.feature].column == "mean_cwnd_bytes"
        assert subject.importances[0].feature.column == "mean_cwnd_bytes"
        assert subject.importances[0].accuracy > 0.9 > subject.importances[1].accuracy
        assert subject.selections[0].confusion.accuracy > 0.9


def test_one_selection_leaves_out_what_restates_the_throughput(report: Report) -> None:
    every, others = report.subjects[0].selections
    assert (len(every.features), len(others.features)) == (17, 15)
    left = {feature.column for feature in every.features} - {feature.column for feature in others.features}
    assert left == {"server_mean_ipt_us", "client_mean_ipt_us"}


def test_within_a_group_the_throughput_follows_what_decides_it(report: Report) -> None:
    within = report.subjects[0].within
    assert [one.group for one in within] == ["RP1", "RP2", "RP3", "RP4"]
    for one in within:
        rho = {feature.column: value for feature, value in one.correlations.items()}
        assert rho["mean_cwnd_bytes"] == pytest.approx(1.0)
        assert max(abs(value or 0.0) for column, value in rho.items() if column != "mean_cwnd_bytes") < 0.7
        assert one.slowest_mbps < one.fastest_mbps


def test_features_are_left_out_on_demand(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", table())
    left = tuple(feature.column for feature in FEATURES if feature.restates_throughput)
    subject = analyse(path, Options(without=(*left, "mean_cwnd_bytes"))).subjects[0]
    assert [selection.name for selection in subject.selections] == ["all"]
    assert len(subject.selections[0].features) == 14
    assert subject.selections[0].confusion.accuracy < 0.6


def test_failed_runs_and_rows_without_a_value_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = table()
    rows[0].update(status="failed", mean_cwnd_bytes="")
    rows[1].update(status="failed", ack_freq="none")
    rows[2].update(var_delay="")
    report = analyse(write(tmp_path / "runs.csv", rows), Options())
    assert (report.rows, report.skipped) == (117, 3)
    assert to_json(report)["rows_skipped"] == 3


def test_a_table_without_variants_has_one_subject(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key not in ("variant", "status")} for row in table()]
    report = analyse(write(tmp_path / "runs.csv", rows), Options())
    assert [subject.name for subject in report.subjects] == [None]


def test_a_table_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    def analysed(change: dict[str, object], options: Options | None = None, rows: int = 120) -> None:
        changed = [{**row, **change} for row in table(rows)]
        analyse(write(tmp_path / "runs.csv", changed), options or Options())

    with pytest.raises(NotANumberError, match="row 1: var_cwnd"):
        analysed({"var_cwnd": "large"})
    with pytest.raises(EmptyTableError, match="no row of a finished run"):
        analysed({"status": "failed"})
    with pytest.raises(TooFewRowsError, match="tcp: 12 rows, and at least 20"):
        analysed({}, rows=24)
    with pytest.raises(TooManyClassesError, match="choose wider ones"):
        analysed({}, Options(class_mbps=0.001))
    with pytest.raises(MissingColumnsError, match="no column hops"):
        analysed({}, Options(group="hops"))
    with pytest.raises(OptionError, match="--by has 120 values"):
        analysed({}, Options(by="run"))
    with pytest.raises(OptionError, match="luck is not a feature: the features are server_mean_ipt_us"):
        analysed({}, Options(without=("luck",)))
    with pytest.raises(OptionError, match="every feature is excluded"):
        analysed({}, Options(without=tuple(feature.column for feature in FEATURES)))
    rows = [{key: value for key, value in row.items() if key != GOODPUT} for row in table()]
    with pytest.raises(MissingColumnsError, match=f"no column {GOODPUT}; the table must be runs.csv"):
        analyse(write(tmp_path / "runs.csv", rows), Options())


def test_an_analysis_is_the_same_each_time(report: Report, files: dict[str, bytes]) -> None:
    again = analyse(report.source, report.options)
    assert to_json(again) == to_json(report)
    assert render(again) == files


def test_the_files_are_figures_texts_a_page_and_a_document(files: dict[str, bytes]) -> None:
    stems = {name.rsplit(".", 1)[0] for name in files if name.endswith(".svg")}
    subjects = ("all", "tcp", "quic")
    assert stems == {
        stem for name in subjects for stem in (f"tree-{name}", f"tree-{name}-without-mean-ipt", f"gains-{name}")
    }
    for stem in stems:
        assert files[f"{stem}.png"].startswith(b"\x89PNG")
        assert ET.fromstring(files[f"{stem}.svg"]).tag.endswith("svg")
    assert "mean cwnd ≤" in files["tree-quic.txt"].decode()
    assert json.loads(files["determinants.json"])["subjects"][0]["trees"][0]["root"] == "mean_cwnd_bytes"


def test_a_picture_of_a_tree_names_questions_and_classes(files: dict[str, bytes]) -> None:
    texts = re.findall(r">([^<>]+)</text>", files["tree-all.svg"].decode())
    assert "mean cwnd" in texts
    assert {"t0", "t10", "t20", "t30"} <= set(texts)
    assert any(text.startswith(("≤", "&lt;")) and text.endswith("kB") for text in texts)


class Elements(HTMLParser):
    """The content of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href"):
                self.links.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(files: dict[str, bytes]) -> None:
    page = files["report.html"].decode()
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    assert len(elements.ids) == len(set(elements.ids))
    assert all(link.startswith("#") and link[1:] in elements.ids for link in elements.links)
    assert not re.search(r"<script|@import|url\(\s*[\"']?http", page)
    assert 'name="viewport"' in page
    assert "--paper" in page


def test_what_a_table_says_is_text_in_the_page(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", table(variants=("<b>$x$</b>", "../up")))
    files = render(analyse(path, Options(folds=2)))
    page = files["report.html"].decode()
    assert "<b>" not in page
    assert "&lt;b&gt;$x$&lt;/b&gt;" in page
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in files)


def test_each_protocol_has_files_of_its_own_whatever_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", table(variants=("2", "x y")))
    report = analyse(path, Options(folds=2))
    trees = {name for name in render(report) if re.fullmatch(r"tree-[^-]*\.txt", name)}
    assert len(trees) == len(report.subjects) == 3


def test_the_command_writes_a_directory_and_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "runs.csv", table(60, ("quic",)))
    assert main(["determinants", str(path), "-o", str(tmp_path / "out"), "--folds", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split()[:5] == ["all", "rows", "all", "60", "mean_cwnd_bytes"]
    assert str(tmp_path / "out" / "report.html") in printed.err
    assert (tmp_path / "out" / "report.html").exists()
    assert not list((tmp_path / "out").glob(".*"))


def test_json_is_one_document_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "runs.csv", table(60, ("quic",)))
    assert main(["determinants", str(path), "--json", "--folds", "3"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == 60
    assert {tree["selection"] for tree in document["subjects"][0]["trees"]} == {"all", "without_mean_ipt"}


def test_errors_are_a_line_and_leave_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["determinants", str(tmp_path / "none.csv"), "-o", str(out)]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'none.csv'}: there is no such file\n"
    assert not out.exists()


def test_an_output_that_takes_no_more_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", table(60, ("quic",)))
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "marline", "determinants", str(path), "--json", "--folds", "2"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == "error: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--folds", "1"],
        ["--folds", "nan"],
        ["--folds", "inf"],
        ["--class-mbps", "0"],
        ["--confidence", "0.7"],
        ["--without", "luck"],
    ],
)
def test_values_out_of_range_are_errors_of_the_command_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["determinants", "runs.csv", *arguments])
    assert raised.value.code == 2
    told = capsys.readouterr().err
    assert arguments[0] in told
    assert (told.startswith("error: "), told.count("\n")) == (True, 1)


def test_files_are_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    write_all(tmp_path / "out", {"a": b"1", "b": b"2"})
    write_all(tmp_path / "out", {"a": b"3"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"3", "b": b"2"}
    with pytest.raises(OutputError, match="cannot be written"):
        write_all(tmp_path / "out", {"a": b"4", "no/such/place": b"5"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"a": b"3", "b": b"2"}
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_all(tmp_path / "file", {"a": b"1"})


def test_progress_is_written_for_long_work_only() -> None:
    quick, slow = io.StringIO(), io.StringIO()
    for stream, every_s in ((quick, 60.0), (slow, 0.0)):
        progress = Progress(2, stream, every_s)
        progress.step("one")
        progress.step("two")
        progress.end()
    assert quick.getvalue() == ""
    assert slow.getvalue() == " 50 %  one\n100 %  two\n"
