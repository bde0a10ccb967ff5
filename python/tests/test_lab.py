"""Results of the laboratory as tables and figures. ``data/train`` is what ``marline lab run train.toml`` wrote."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from marline.cli import main
from marline.errors import MissingFileError, OptionError, UnreadableFileError
from marline.lab import Paper, Results

TRAIN = Path(__file__).parent / "data" / "train"


@pytest.fixture
def results() -> Results:
    return Results.open(TRAIN)


def test_runs_are_those_of_the_csv(results: Results) -> None:
    runs = results.runs()
    with (TRAIN / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(runs) == len(rows) == 48
    assert list(runs["completion_s"]) == [float(row["completion_s"]) for row in rows]
    assert list(runs["link.loss"]) == [row["link.loss"] for row in rows]
    assert set(rows[0]) <= set(runs.columns)


def test_cells_have_the_statistics_of_their_runs(results: Results) -> None:
    cells = results.cells()
    cell = cells[(cells["metric"] == "completion_s") & (cells["variant"] == "bbr") & (cells["link.loss"] == "3%")]
    runs = results.runs()
    values = runs.loc[(runs["variant"] == "bbr") & (runs["link.loss"] == "3%"), "completion_s"]
    assert cell["n"].item() == len(values) == 8
    assert cell["median"].item() == pytest.approx(values.median())
    assert cell["ci95_low"].item() <= cell["median"].item() <= cell["ci95_high"].item()


def test_comparisons_and_claims_are_rows(results: Results) -> None:
    comparisons = results.comparisons()
    assert list(comparisons["link.loss"]) == ["0%", "1%", "3%"]
    assert set(comparisons["a"]) == {"bbr"}
    claims = results.claims()
    assert list(claims["text"]) == ["BBR is faster where packets are lost"]
    assert len(results.correlations()) == 3
    assert results.published().empty


def test_series_are_long_tables_with_times(results: Results) -> None:
    series = results.series()
    assert {"window_bytes", "rtt_s"} <= set(series["name"])
    assert set(series["variant"]) == {"newreno", "bbr"}
    assert "lost" in set(results.moments()["name"])


def test_a_distribution_begins_where_the_values_do(results: Results) -> None:
    (axes,) = results.distribution(where={"link.loss": "3%"}).figure.axes
    runs = results.runs()
    values = runs.loc[runs["link.loss"] == "3%", "completion_s"]
    low, high = axes.get_xlim()
    span = values.max() - values.min()
    assert values.min() - 0.1 * span < low < values.min()
    assert values.max() < high < values.max() + 0.1 * span


def test_a_figure_has_the_width_of_its_column_and_the_size_of_its_text(results: Results, tmp_path: Path) -> None:
    path = results.boxes(paper=Paper(width_in=3.33, font_pt=8)).save(tmp_path / "boxes.svg")
    svg = path.read_text(encoding="utf-8")
    assert f'width="{3.33 * 72:g}pt"' in svg
    assert "font-size: 8px" in svg
    # Text that stays text can be searched.
    assert "completion (s)" in svg


def test_figures_are_equal_files_and_embed_their_fonts(results: Results, tmp_path: Path) -> None:
    first = results.boxes().save(tmp_path / "boxes.pdf").read_bytes()
    second = results.boxes().save(tmp_path / "boxes.pdf").read_bytes()
    assert first == second
    assert b"/FontFile2" in first
    assert b"/Type3" not in first


def test_every_improvement_has_a_row_with_its_interval(results: Results) -> None:
    (axes,) = results.improvements().figure.axes
    labels = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert labels == ["bbr over newreno, 0%", "bbr over newreno, 1%", "bbr over newreno, 3%"]
    percents = [np.asarray(line.get_xdata())[0] for line in axes.lines if line.get_marker() == "o"]
    assert percents == list(results.comparisons()["improvement_percent"])


def test_a_run_over_time_has_a_panel_for_each_kind(results: Results) -> None:
    figure = results.over_time("bbr", 0).figure
    titles = [axes.get_ylabel() for axes in figure.axes]
    assert titles[0] == "window (kB)"
    assert "rtt (s)" in titles


def test_marks_of_a_correlation_are_the_runs(results: Results) -> None:
    (axes,) = results.correlation("packets_lost").figure.axes
    marks = sum(len(np.asarray(line.get_xdata())) for line in axes.lines)
    assert marks == len(results.runs())


def test_errors_name_what_there_is(results: Results, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no such file"):
        Results.open(tmp_path)
    with pytest.raises(OptionError, match="completion_s"):
        results.boxes("speed")
    with pytest.raises(OptionError, match="points are"):
        results.distribution(where={"link.loss": "9%"})
    with pytest.raises(OptionError, match="pdf"):
        results.boxes().save(tmp_path / "boxes.doc")
    with pytest.raises(OptionError, match="width_in"):
        Paper(width_in=0)
    broken = tmp_path / "broken"
    shutil.copytree(TRAIN, broken)
    with (broken / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write("{\n")
    with pytest.raises(UnreadableFileError, match="line 55"):
        Results.open(broken).runs()


def test_the_command_draws_what_a_report_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figures", str(TRAIN), "-o", str(tmp_path / "figures"), "--format", "svg"]) == 0
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == [
        "boxes.svg", "distribution-0.svg", "distribution-1.svg", "distribution-2.svg", "distribution.svg",
        "improvements.svg", "time-bbr.svg", "time-newreno.svg",
    ]  # fmt: skip
    assert len(capsys.readouterr().out.splitlines()) == len(names)
