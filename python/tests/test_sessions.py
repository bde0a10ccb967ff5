"""Sessions of flows: the scan, the engines, the files that are read, the command."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows import write_flows
from marline.cli import main
from marline.errors import EmptyTableError, MissingColumnsError, MissingFileError, UnreadableFileError
from marline.flows.sessions import Flows, Options, Sessions, Summary, scan, session_of, sessions, summarise
from marline.flows.sessions.document import to_json
from marline.flows.sessions.engines import EngineError
from marline.flows.sessions.report import NoFlowsError, analyse
from marline.flows.sessions.scan import NONE, UnsortedFlowsError
from marline.flows.source import FlowFile

DATA = Path(__file__).parent / "data" / "flows"
GAP_US = 5_000_000

rows = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 20).map(lambda step: step * 1_000_000),
        st.integers(0, 10).map(lambda step: step * 700_000),
        st.integers(1, 3),
        st.integers(0, 1000),
    ),
    max_size=40,
)


def flows_of(found: list[Any]) -> Flows:
    table = np.array(sorted(found), dtype=np.int64).reshape(-1, 6)
    key, second, start, duration, port, size = table.T
    return Flows(key, second, start, start + duration, port, size)


def by_the_text(found: list[Any]) -> list[tuple[int, bool, float | None, float | None]]:
    """Flows, parallel, p and r of each session, written down as section 4 of the study says it."""
    active: dict[Any, list[Any]] = {}
    closed = []
    for flow in sorted(found):
        key = flow[:2]
        if key in active and flow[2] > active[key][0][2] + GAP_US:
            closed.append(active.pop(key))
        active.setdefault(key, []).append(flow)
    results = []
    for session in [*closed, *active.values()]:
        longest = max(session, key=lambda flow: flow[3])
        others = [flow for flow in session if flow is not longest]
        overlaps = [
            max(0, min(flow[2] + flow[3], longest[2] + longest[3]) - max(flow[2], longest[2])) for flow in others
        ]
        p = None if not others else 100 * max(overlaps) / longest[3] if longest[3] else 0.0
        largest = max(flow[5] for flow in session)
        r = 100 * (sum(flow[5] for flow in session) - largest) / largest if largest else None
        results.append((len(session), len({flow[4] for flow in session}) > 1, p, r))
    return sorted(results, key=repr)


def seen(found: list[Sessions]) -> list[tuple[int, bool, float | None, float | None]]:
    results: list[tuple[int, bool, float | None, float | None]] = []
    for batch in found:
        for count, parallel, p, r in zip(
            batch.flows, batch.parallel, batch.time_overlap_percent, batch.data_overlap_percent, strict=True
        ):
            values = [None if np.isnan(x) else float(x) for x in (p, r)]
            results.append((int(count), bool(parallel), values[0], values[1]))
    return sorted(results, key=repr)


# The first example compiles.
@settings(deadline=None)
@given(rows, st.integers(1, 7))
def test_sessions_are_those_of_the_text_however_flows_are_cut_into_batches(found: list[Any], size: int) -> None:
    flows = flows_of(found)
    batches = (flows.rows(at, min(at + size, len(flows))) for at in range(0, len(flows), size))
    ours, theirs = seen(list(scan(batches, GAP_US))), by_the_text(found)
    assert [one[:2] for one in ours] == [one[:2] for one in theirs]
    for left, right in zip(ours, theirs, strict=True):
        assert left[2:] == pytest.approx(right[2:], nan_ok=True)


def test_a_session_that_fills_many_batches_is_one() -> None:
    flows = flows_of([(0, 0, at, 10, at, 1) for at in range(1000)])
    (batch,) = scan((flows.rows(at, at + 1) for at in range(1000)), GAP_US)
    assert (batch.flows.tolist(), batch.parallel.tolist()) == ([1000], [True])


@settings(deadline=None)
@given(rows.filter(lambda found: len(set(found)) > 1), st.data())
def test_flows_out_of_order_are_refused(found: list[Any], data: st.DataObject) -> None:
    table = sorted(set(found))
    at = data.draw(st.integers(0, len(table) - 2))
    if table[at][:3] == table[at + 1][:3]:
        return
    columns = np.array(table, dtype=np.int64)
    columns[[at, at + 1]] = columns[[at + 1, at]]
    key, second, start, duration, port, size = columns.T
    cut = data.draw(st.integers(1, len(table)))
    swapped = Flows(key, second, start, start + duration, port, size)
    with pytest.raises(UnsortedFlowsError, match=f"flow {at + 1} "):
        list(scan([swapped.rows(0, cut), swapped.rows(cut, len(swapped))], GAP_US))


def test_one_flow_overlaps_nothing() -> None:
    one = np.array([5], dtype=np.int64)
    alone = session_of(one, one + 10, one, one)
    assert alone.overlapping.tolist() == [NONE]
    assert np.isnan(alone.time_overlap_percent).all()


def summary_of(path: Path, options: Options) -> Summary:
    return summarise(sessions(FlowFile.open(path), options))


def test_both_engines_find_the_same_sessions(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("skipped: there is no Java, which Spark runs on")
    path = write_flows(tmp_path / "flows.parquet")
    for options in (Options(), Options(gap_s=0.5, http="any", without=("10.0.1.0/24", "10.0.0.1"))):
        ours = to_json(summary_of(path, options))
        assert ours == to_json(summary_of(path, replace(options, engine="spark")))
        assert isinstance(ours["parallel_sessions"], int)
        assert ours["parallel_sessions"] > 100


def test_csv_and_parquet_are_alike_and_clients_can_be_left_out(tmp_path: Path) -> None:
    table, text = write_flows(tmp_path / "flows.parquet"), write_flows(tmp_path / "flows.csv")
    every = summary_of(table, Options(http="any"))
    assert to_json(every) == to_json(summary_of(text, Options(http="any")))
    assert every.flows == 20_000
    fewer = summary_of(table, Options(http="any", without=("10.0.1.0/24",)))
    only = summary_of(table, Options(http="any", without=("10.0.0.0/24", "10.0.2.0/24")))
    assert fewer.flows + only.flows == every.flows
    assert fewer.sessions + only.sessions == every.sessions
    versions = [summary_of(table, Options(http=http)).flows for http in ("h1", "h2")]
    assert 0 < sum(versions) < every.flows


@pytest.mark.parametrize(
    ("file", "program", "flow"),
    [
        ("nfdump.csv", "nfdump", (1700000000.0, 1700000000.05, "10.0.0.1", 50000, 4, 3, 460, 1120, None, None)),
        ("nfdump-joined.csv", "nfdump", (1700000000.0, 1700000000.06, "10.0.0.1", 50000, 4, 3, 460, 1120, None, None)),
        (
            "conn.log",
            "zeek",
            (1700000000.5, 1700000000.75, "10.0.0.1", 50000, 5, 4, 560, 1160, "example.net", "h2"),
        ),
        (
            "log_tcp_complete",
            "tstat",
            (1700000000.500123, 1700000000.7505, "10.0.0.1", 50000, 5, 4, 300, 1000, "example.net", "h2"),
        ),
    ],
)
def test_records_of_other_programs_are_read(file: str, program: str, flow: tuple[object, ...]) -> None:
    opened = FlowFile.open(DATA / file)
    assert opened.format == program
    columns = "start_s, end_s, client_ip, client_port, client_packets, server_packets, client_bytes, server_bytes"
    found = opened.relation.order("client_port").project(f"{columns}, sni, http_version, server_port").fetchall()
    assert found[0] == (*flow, 443)


def test_a_quic_connection_in_two_logs_of_zeek_is_one_flow() -> None:
    found = FlowFile.open(DATA / "conn.log").relation.filter("transport = 'udp'").project("sni, http_version")
    assert found.fetchall() == [("q.example.net", "h3")]


def test_records_of_one_connection_are_joined(tmp_path: Path) -> None:
    header, *records = (DATA / "nfdump.csv").read_text().splitlines()
    forward, backward = records[:2]
    later = [line.replace("22:13:20", "22:14:30") for line in (forward, backward)]
    much_later = [line.replace("22:13:20", "23:14:30") for line in (forward, backward)]
    path = tmp_path / "split.csv"
    path.write_text("\n".join([header, *later, forward, backward, *much_later]) + "\n")
    found = FlowFile.open(path).relation.order("start_s").project("start_s, end_s, client_packets, server_bytes")
    assert found.fetchall() == [(1700000000.0, 1700000070.05, 8, 2240), (1700003670.0, 1700003670.05, 4, 1120)]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    def opened(name: str, content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        analyse(tmp_path / name, Options())

    with pytest.raises(EmptyTableError, match="is empty"):
        opened("empty.csv", b"")
    with pytest.raises(MissingFileError):
        analyse(tmp_path / "absent.csv", Options())
    with pytest.raises(MissingColumnsError, match="no column end_s"):
        opened("few.csv", b"start_s,client_ip,client_port,server_ip,server_port\n1,a,1,b,2\n")
    with pytest.raises(UnreadableFileError, match="two of its columns have one name"):
        opened("twice.csv", b"start_s,start_s\n1,2\n")
    with pytest.raises(UnreadableFileError, match="is cut, its end is missing"):
        opened("cut.parquet", write_flows(tmp_path / "whole.parquet", 100).read_bytes()[:500])
    with pytest.raises(UnreadableFileError, match=r"a capture of packets: `marline flow day\.pcap -o flows\.parquet`"):
        opened("day.pcap", b"\xd4\xc3\xb2\xa1" + bytes(20))
    with pytest.raises(UnreadableFileError, match="a directory: name a file in it"):
        analyse(tmp_path, Options())
    with pytest.raises(UnreadableFileError, match="no line `#fields`"):
        opened("conn.log", b"#separator \\x09\n")
    with pytest.raises(NoFlowsError, match=r"1 records, none of h2.*use --http any"):
        analyse(DATA / "nfdump.csv", Options())
    with pytest.raises(EngineError, match="Spark reads Parquet with the columns of flows"):
        analyse(DATA / "conn.log", Options(engine="spark"))


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flows(tmp_path / "flows.parquet")
    assert main(["sessions", str(path), "-o", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["isolated_flows"] + document["parallel_flows"] == document["flows"]
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"report.html", "sessions.json", "time-overlap.svg", "data-overlap-by-size.png"} <= names
    assert {"longest-flows.svg", "largest-flows.png"} <= names
    report = (tmp_path / "out" / "report.html").read_text()
    assert "study: campus" in report
    assert f"{document['sessions']:,}" in report
    assert main(["sessions", str(path)]) == 0
    assert "a parallel session has" in capsys.readouterr().out


def test_the_command_refuses_what_makes_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--gap", "-1"], ["--gap", "five"], ["--without", "10.0.0.0/33"], ["--without", "home"]):
        with pytest.raises(SystemExit):
            main(["sessions", "flows.parquet", *wrong])
    assert "must be" in capsys.readouterr().err
    assert main(["sessions", str(tmp_path / "absent"), "-o", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()


NEEDED = "start_s,end_s,client_ip,client_port,server_ip,server_port"


def text(path: Path, lines: list[str], more: str = "") -> Path:
    path.write_text("\n".join([NEEDED + more, *lines]) + "\n")
    return path


def test_a_line_that_cannot_be_read_is_an_error_with_its_number(tmp_path: Path) -> None:
    lines = [f"{at},{at + 1},10.0.0.1,{at},192.0.2.1,443,n.example" for at in range(2000)]
    for wrong in (
        '7,8,10.0.0.1,7,192.0.2.1,443,"n.example',
        "7,8,10.0.0.1",
        "7,8,10.0.0.1,7,192.0.2.1,443,n.example,9",
    ):
        path = text(tmp_path / "flows.csv", [*lines[:7], wrong, *lines[8:]], ",sni")
        with pytest.raises(UnreadableFileError, match="CSV Error on Line: 9"):
            analyse(path, Options(http="any"))
    content = text(tmp_path / "flows.csv", lines, ",sni").read_bytes()
    (tmp_path / "flows.csv").write_bytes(content.replace(b"443,n.e", b"443,\xe9.e", 1))
    with pytest.raises(UnreadableFileError, match=r"Line: 2; .*unicode"):
        analyse(tmp_path / "flows.csv", Options(http="any"))


def test_values_that_cannot_be_are_left_out_and_counted(tmp_path: Path) -> None:
    good = "1,2,10.0.0.1,5000,192.0.2.1,443,10"
    impossible = [
        "-1,2,10.0.0.1,5000,192.0.2.1,443,10",
        "3,2,10.0.0.1,5000,192.0.2.1,443,10",
        "nan,2,10.0.0.1,5000,192.0.2.1,443,10",
        "1,nan,10.0.0.1,5000,192.0.2.1,443,10",
        "nan,nan,10.0.0.1,5000,192.0.2.1,443,10",
        "1,1e300,10.0.0.1,5000,192.0.2.1,443,10",
        "inf,inf,10.0.0.1,5000,192.0.2.1,443,10",
        "253402300800,253402300801,10.0.0.1,5000,192.0.2.1,443,10",
        "1,2,10.0.0.1,-1,192.0.2.1,443,10",
        "1,2,10.0.0.1,5000,192.0.2.1,65536,10",
        "1,2,10.0.0.1,5000,192.0.2.1,443,-10",
        "1,2,10.0.0.1,5000,192.0.2.1,443,9223372036854775807",
    ]
    report = analyse(text(tmp_path / "flows.csv", [good, *impossible, good], ",client_bytes"), Options(http="any"))
    assert (report.summary.flows, report.left_out) == (2, len(impossible))


def test_parts_of_a_flow_are_one_flow(tmp_path: Path) -> None:
    parts = [
        "10,15,10.0.0.1,5000,192.0.2.1,443,7,0,100,a.example,",
        "20,25,10.0.0.1,5000,192.0.2.1,443,7,1,200,,h2",
        # Of another file: the same number, and other ends; and the same ends later.
        "10,15,10.0.0.1,6000,192.0.2.1,443,7,0,1,a.example,h2",
        "90,95,10.0.0.1,5000,192.0.2.1,443,7,0,2,b.example,h2",
        # Which cannot be, and belongs to nothing.
        "nan,26,10.0.0.1,5000,192.0.2.1,443,7,2,200,,h2",
    ]
    path = text(tmp_path / "parts.csv", parts, ",flow_id,part,client_bytes,sni,http_version")
    found = (
        FlowFile.open(path)
        .flows.order("start_s, client_port")
        .project("start_s, end_s, client_bytes, sni, http_version")
    )
    assert found.fetchall() == [
        (10.0, 25.0, 300, "a.example", "h2"),
        (10.0, 15.0, 1, "a.example", "h2"),
        (90.0, 95.0, 2, "b.example", "h2"),
    ]
    report = analyse(path, Options(http="any"))
    assert (report.records, report.summary.flows, report.left_out) == (4, 3, 1)
    table = tmp_path / "parts.parquet"
    duckdb.execute(f"COPY (SELECT * FROM '{path}') TO '{table}'")
    with pytest.raises(EngineError, match="without --active-timeout"):
        analyse(table, Options(engine="spark"))


def test_headers_in_quotes_are_read_and_other_separators_are_named(tmp_path: Path) -> None:
    header = ",".join(f'"{name}"' for name in NEEDED.split(","))
    path = tmp_path / "flows.csv"
    path.write_text(f'{header}\n1,2,"10.0.0.1",5000,"192.0.2.1",443\n')
    assert analyse(path, Options(http="any")).summary.flows == 1
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        path.write_text(NEEDED.replace(",", separator) + "\n")
        with pytest.raises(UnreadableFileError, match=f"has {name} between its columns, and must have commas"):
            FlowFile.open(path)
    path.write_text(NEEDED + "\n", encoding="utf-16")
    with pytest.raises(UnreadableFileError, match="is text in UTF-16"):
        FlowFile.open(path)


def test_without_a_parallel_session_nothing_empty_is_drawn(tmp_path: Path) -> None:
    path = text(tmp_path / "flows.csv", ["1,2,10.0.0.1,5000,192.0.2.1,443"])
    assert main(["sessions", str(path), "--http", "any", "-o", str(tmp_path / "out")]) == 0
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "sessions.json", "flows-per-session.svg", "flows-per-session.png"}
    assert "There is nothing to show: no session is parallel." in (tmp_path / "out" / "report.html").read_text()


def test_what_is_guarded_against_spreadsheets_is_read_as_it_was(tmp_path: Path) -> None:
    cells = ["'=1+2", "'+1", "'-1.5", "'@SUM(A1)", "'\t=1", '"\'\r=1"', "'quoted'", "''=1", "-1.5", "plain"]
    lines = [f"{at},{at + 1},10.0.0.1,5000,192.0.2.1,443,{cell},'-1.5" for at, cell in enumerate(cells)]
    opened = FlowFile.open(text(tmp_path / "flows.csv", lines, ",sni,of_others"))
    expected = ["=1+2", "+1", "-1.5", "@SUM(A1)", "\t=1", "\r=1", "'quoted'", "''=1", "-1.5", "plain"]
    assert opened.flows.order("start_s").project("sni").fetchall() == [(name,) for name in expected]
    assert set(opened.copied()[0].project("of_others").fetchall()) == {("-1.5",)}
