"""Characteristics of flows of each version: distributions, services, files, the command."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from flows import write_flows, write_labelled
from marline.cli import main
from marline.errors import EmptyTableError, MissingColumnsError, UnreadableFileError
from marline.flows.characterise import Distribution, Options, analyse
from marline.flows.characterise.analysis import NoLabelsError
from marline.flows.characterise.document import to_json


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("flows") / "labelled.parquet")


def named(path: Path, rows: list[tuple[float, str, str | None]]) -> Path:
    """Flows with a start, a name and a version."""
    values = ", ".join(
        f"({start}, $${sni}$$, {'NULL' if version is None else repr(version)})" for start, sni, version in rows
    )
    duckdb.execute(
        f"COPY (SELECT start_s, start_s + 1 AS end_s, '10.0.0.1' AS client_ip, 5000 AS client_port, '192.0.2.1' AS "
        f"server_ip, 443 AS server_port, sni, http_version FROM (VALUES {values}) AS rows(start_s, sni, http_version)) "
        f"TO '{path}' (FORMAT PARQUET)"
    )
    return path


def test_a_distribution_is_the_flows_own(labelled: Path) -> None:
    report = analyse(labelled, Options())
    assert [kind.version for kind in report.kinds] == ["h1", "h2", "h3"]
    for kind in report.kinds:
        for column, sql in (("duration_s", "end_s - start_s"), ("server_bytes", "server_bytes")):
            rows = duckdb.execute(f"SELECT {sql} FROM '{labelled}' WHERE http_version = '{kind.version}'").fetchnumpy()
            (values,) = rows.values()
            found = kind.of[column]
            assert found.counts.sum() == kind.flows == len(values)
            assert found.mean == pytest.approx(values.mean())
            # Exact at the ends of bins, and near elsewhere.
            assert np.allclose(np.cumsum(found.counts) / len(values), [(values <= end).mean() for end in found.values])
            assert found.percentile(50) == pytest.approx(np.median(values), rel=0.03)
            assert found.share_below(10) == pytest.approx((values < 10).mean())


def test_what_is_zero_is_counted_and_not_taken_to_a_logarithm() -> None:
    few = Distribution(np.array([0.0, 5.0]), np.array([3.0, 1.0]), 1.25)
    assert (few.percentile(50), few.percentile(100), few.share_below(1)) == (0.0, 5.0, 0.75)


def test_points_are_as_many_as_asked_and_the_same_each_time(labelled: Path) -> None:
    first, second = (analyse(labelled, Options(sample=50)) for _ in range(2))
    for one, other in zip(first.kinds, second.kinds, strict=True):
        assert len(one.points["duration_s"]) == 50
        for name, values in one.points.items():
            assert (values == other.points[name]).all()


def test_services_are_the_names_that_can_be_registered(tmp_path: Path) -> None:
    rows: list[tuple[float, str, str | None]] = [
        (0, "www.example.com", "h1"),
        (1, "a.b.Example.com", "h2"),
        (2, "static.shop.co.uk", "h3"),
        (3, "localhost", None),
        (4, "example.com.", "h2"),
        (5, "it's.example", "h2"),
    ]
    report = analyse(named(tmp_path / "names.parquet", rows), Options())
    assert {service.name: service.flows for service in report.services} == {
        "example.com": 3, "shop.co.uk": 1, "localhost": 1, "it's.example": 1
    }  # fmt: skip
    assert report.services[0].periods[0].flows == (1, 2, 0, 0, 0)
    assert analyse(tmp_path / "names.parquet", Options(services=1)).services == report.services[:1]


@pytest.mark.parametrize(
    ("apart_s", "begins"),
    [
        (3600, ["2023-11-14 22 h", "2023-11-14 23 h"]),
        (10 * 86_400, ["2023-11-14", "2023-11-24"]),
        (183 * 86_400, ["2023-11", "2024-05"]),
    ],
)
def test_time_is_cut_by_the_span_of_the_capture(apart_s: int, begins: list[str], tmp_path: Path) -> None:
    start = 1_700_000_000
    path = named(tmp_path / "spans.parquet", [(start, "a.example", "h1"), (start + apart_s, "b.a.example", "h2")])
    (service,) = analyse(path, Options()).services
    assert [period.begin for period in service.periods] == begins
    assert [period.flows[:2] for period in service.periods] == [(1, 0), (0, 1)]


def test_flows_without_packets_and_bytes_have_a_duration(tmp_path: Path) -> None:
    report = analyse(named(tmp_path / "few.parquet", [(0, "a.example", "h2")]), Options())
    assert list(report.kinds[0].of) == ["duration_s"]
    assert main(["characterise", str(tmp_path / "few.parquet"), "-o", str(tmp_path / "out")]) == 0


def test_a_file_that_cannot_be_read_is_an_error_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").touch()
    with pytest.raises(EmptyTableError, match="is empty"):
        analyse(tmp_path / "empty.csv", Options())
    (tmp_path / "few.csv").write_text("start_s,client_ip,client_port,server_ip,server_port\n1,a,1,b,443\n")
    with pytest.raises(MissingColumnsError, match="no column end_s"):
        analyse(tmp_path / "few.csv", Options())
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(write_flows(tmp_path / "whole.parquet", 100).read_bytes()[:500])
    with pytest.raises(UnreadableFileError, match="is cut, its end is missing"):
        analyse(cut, Options())
    with pytest.raises(NoLabelsError, match="whose `http_version` is known"):
        analyse(named(tmp_path / "unknown.parquet", [(0, "a.example", None)]), Options())
    assert main(["characterise", str(cut), "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_prints_and_draws(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["characterise", str(labelled), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(json.dumps(to_json(analyse(labelled, Options()))))
    names = {file.name for file in out.iterdir()}
    figures = ("duration", "packets", "packet-size", "bytes", "packet-sizes", "packet-size-duration", "adoption")
    assert names == {
        "report.html",
        "characterise.json",
        *(f"{name}.{form}" for name in figures for form in ("svg", "png")),
    }
    report = (out / "report.html").read_text()
    assert "study: h2" in report
    assert "nan" not in report
    assert "-o DIR --sample 1500 --services 10<" in report
    assert main(["characterise", str(labelled)]) == 0
    assert f"{document['versions']['h3']['flows']:,}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["characterise", str(labelled), "--sample", "0"])
