"""Records of flows as several programs and versions write them, compressed or not, whole or not."""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from marline.cli import main
from marline.errors import MarlineError, MissingColumnsError, UnreadableFileError
from marline.flows.sessions import Options
from marline.flows.sessions.report import NoFlowsError, Report, analyse
from marline.flows.source import FlowFile
from runs import table
from runs import write as write_runs

ANY = Options(http="any")

Record = dict[str, str]
COLUMNS = "start_s, end_s, client_ip, client_port, server_ip, transport, client_packets, server_packets, server_bytes"
FLOWS = [
    (1795168800.123, 1795168801.623, "192.0.2.10", 50000, "198.51.100.5", "tcp", 10, 12, 15000),
    (1795168801.0, 1795168803.02, "2001:db8::a", 50001, "2001:db8::5", "udp", 11, 14, 18000),
]
"""Two flows, of IPv4 and IPv6, whose directions are a record each in the following."""

HALVES: list[Record] = [
    {"ts": "10:00:00.123", "te": "10:00:01.623", "td": "1.500", "pr": "TCP", "sa": "192.0.2.10", "sp": "50000"}
    | {"da": "198.51.100.5", "dp": "443", "flg": "...AP.SF", "pkt": "10", "byt": "1500"},
    {"ts": "10:00:00.140", "te": "10:00:01.620", "td": "1.480", "pr": "TCP", "sa": "198.51.100.5", "sp": "443"}
    | {"da": "192.0.2.10", "dp": "50000", "flg": "...AP.SF", "pkt": "12", "byt": "15000"},
    {"ts": "10:00:01.000", "te": "10:00:03.000", "td": "2.000", "pr": "UDP", "sa": "2001:db8::a", "sp": "50001"}
    | {"da": "2001:db8::5", "dp": "443", "flg": "........", "pkt": "11", "byt": "1600"},
    {"ts": "10:00:01.020", "te": "10:00:03.020", "td": "2.000", "pr": "UDP", "sa": "2001:db8::5", "sp": "443"}
    | {"da": "2001:db8::a", "dp": "50001", "flg": "........", "pkt": "14", "byt": "18000"},
]

NEWER = {"ts": "firstSeen", "te": "lastSeen", "td": "duration", "pr": "proto", "sa": "srcAddr", "sp": "srcPort"}
NEWER |= {"da": "dstAddr", "dp": "dstPort", "flg": "flags", "pkt": "packets", "byt": "bytes"}


def milliseconds(time: str) -> str:
    hours, minutes, seconds = time.split(":")
    return str(round((1795132800 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000))


def csv_of(rows: list[Record], columns: list[str], names: dict[str, str]) -> str:
    lines = [",".join(names.get(column, column) for column in columns)]
    return "\n".join([*lines, *(",".join(row[column] for column in columns) for row in rows)]) + "\n"


def dated(rows: list[Record], date: str = "2026-11-20 ") -> list[Record]:
    return [{**row, "ts": date + row["ts"], "te": date + row["te"], "flows": "1"} for row in rows]


def as_1_7_5(rows: list[Record]) -> str:
    return csv_of(dated(rows), ["ts", "td", "pr", "sa", "sp", "da", "dp", "pkt", "byt", "flows"], NEWER)


def in_another_order(rows: list[Record]) -> str:
    return csv_of(dated(rows), ["byt", "dp", "da", "te", "flg", "ts", "sp", "sa", "pkt", "pr"], NEWER)


def with_clocks(rows: list[Record]) -> str:
    rows = [{**row, "td": f"00:00:0{row['td']}"} for row in rows]
    return as_1_7_5(rows)


def fast(rows: list[Record]) -> str:
    numbers = {"TCP": "6", "UDP": "17"}
    rows = [
        {
            **row,
            "ts": milliseconds(row["ts"]),
            "te": milliseconds(row["te"]),
            "pr": numbers[row["pr"]],
            "cnt": "1",
            "af": "2",
        }
        for row in rows
    ]
    columns = ["cnt", "af", "ts", "te", "pr", "sa", "sp", "da", "dp", "flg", "pkt", "byt"]
    return csv_of(rows, columns, NEWER)


def in_seconds(rows: list[Record]) -> str:
    rows = [{**row, "ts": f"{int(milliseconds(row['ts'])) / 1000:.3f}", "flows": "1"} for row in rows]
    return csv_of(rows, ["ts", "td", "pr", "sa", "sp", "da", "dp", "pkt", "byt"], NEWER)


def older(rows: list[Record]) -> str:
    names = {"pkt": "ipkt", "byt": "ibyt"}
    rows = [{**row, "opkt": "0", "obyt": "0"} for row in dated(rows)]
    columns = ["ts", "te", "td", "sa", "da", "sp", "dp", "pr", "flg", "pkt", "byt", "opkt", "obyt"]
    return (
        csv_of(rows, columns, names) + "Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n2,1580,7,210666,116,225\n"
    )


def objects(rows: list[Record]) -> list[dict[str, Any]]:
    found = []
    for row in dated(rows, "2026-11-20T"):
        four = "6" if ":" in row["sa"] else "4"
        found.append(
            {"cnt": 1, "type": "FLOW", "sampled": 0, "first": row["ts"], "last": row["te"], "received": row["te"]}
            | {"in_packets": int(row["pkt"]), "in_bytes": int(row["byt"]), "proto": 6 if row["pr"] == "TCP" else 17}
            | {"tcp_flags": row["flg"], "src_port": int(row["sp"]), "dst_port": int(row["dp"])}
            | {f"src{four}_addr": row["sa"], f"dst{four}_addr": row["da"], "src4_geo": "", "label": "<none>"}
        )
    return found


def as_array(rows: list[Record]) -> str:
    return "[\n" + ",\n".join(" " + json.dumps(one, indent="\t") for one in objects(rows)) + "\n]\n"


def as_lines(rows: list[Record]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in objects(rows))


def as_older_array(rows: list[Record]) -> str:
    return as_array(rows).replace('"first"', '"t_first"').replace('"last"', '"t_last"')


NFDUMP: dict[str, Callable[[list[Record]], str]] = {
    "csv since 1.7.5": as_1_7_5,
    "csv in another order": in_another_order,
    "csv with clocks": with_clocks,
    "csv-fast": fast,
    "csv in seconds": in_seconds,
    "csv until 1.7.4": older,
    "json": as_array,
    "json until 1.6": as_older_array,
    "ndjson": as_lines,
}


def flows_of(path: Path) -> list[tuple[Any, ...]]:
    return FlowFile.open(path).flows.order("start_s").project(COLUMNS).fetchall()


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("form", NFDUMP)
def test_each_form_of_nfdump_is_read(form: str, ends: str, tmp_path: Path) -> None:
    path = tmp_path / "flows"
    path.write_text(NFDUMP[form](HALVES), newline=ends)
    found = flows_of(path)
    assert [row[2:] for row in found] == [row[2:] for row in FLOWS]
    for row, expected in zip(found, FLOWS, strict=True):
        assert row[:2] == pytest.approx(expected[:2], abs=1e-6)
    assert analyse(path, ANY).left_out == 0


@pytest.mark.parametrize("form", NFDUMP)
def test_a_record_of_nfdump_that_can_be_no_flow_is_left_out_with_its_reason(form: str, tmp_path: Path) -> None:
    backwards = {**HALVES[0], "te": "09:59:59.000", "td": "-1.123", "sp": "50002"}
    rows = [*HALVES, backwards, {**HALVES[0], "sp": "70000"}]
    path = tmp_path / "flows"
    if form == "csv with clocks":
        rows[-2] = {**rows[0], "sp": "x"}
    path.write_text(NFDUMP[form](rows) if form not in ("json", "ndjson") or rows[-2]["sp"] != "x" else "")
    report = analyse(path, ANY)
    assert report.summary.flows == 2
    first = "without a time, an address or a port" if form == "csv with clocks" else "end before they start"
    assert report.reasons == {first: 1, "with a port beyond 65535": 1}


NOTHING = {
    "csv": "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\nNo matching flows\n",
    "older csv": "ts,te,td,sa,da,sp,dp,pr,flg,ipkt,ibyt,opkt,obyt\nNo matched flows\nSummary\n",
    "json": "[\nNo matching flows\n\n]\n",
    "ndjson": "No matching flows\n",
    "line": "Date first seen   Duration Proto   Src IP Addr:Port   Dst IP Addr:Port\nNo matching flows\nSummary: 0\n",
}


@pytest.mark.parametrize("form", NOTHING)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_file_in_which_nfdump_says_that_there_is_nothing_says_so(form: str, ends: str, tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(NOTHING[form], newline=ends)
    with pytest.raises(UnreadableFileError, match="has no flows, as nfdump reports in it"):
        FlowFile.open(path)


def test_what_is_no_record_of_nfdump_is_named(tmp_path: Path) -> None:
    path = tmp_path / "flows"
    for content, told in (
        (b"\x0c\xa5\x01\x00", "nfdump -r flows -o csv"),
        (b"Date first seen          Duration Proto      Src IP Addr:Port\n", "nfdump's human-readable format"),
        (b"firstSeen,duration,srcAddr,dstAddr,packets,bytes\n", "no column proto, srcPort, dstPort"),
        (b"[]\n", "is an empty array of JSON"),
        (b"[1, 2]", "is JSON, and not of records"),
        (b'{"a": 1}\n', "no column start_s, end_s, client_ip and 3 more"),
        (b'{"ts": 1, "id.orig_h"', "begins as JSON, and its first object cannot be read"),
        (b'\xef\xbb\xbf{"ts": 1}', "is JSON with a byte order mark"),
        (b"[" * 70_000, "begins as JSON, and its first object cannot be read"),
        (b" \n\n", "is empty"),
    ):
        path.write_bytes(content)
        with pytest.raises(MarlineError, match=told):
            FlowFile.open(path)


CONN = [
    {"ts": 1795000000.1, "uid": "C0", "id.orig_h": "192.0.2.10", "id.orig_p": 50000, "id.resp_h": "198.51.100.5"}
    | {"id.resp_p": 443, "proto": "tcp", "service": "ssl", "duration": 1.5, "orig_bytes": 500, "history": "ShADadFf"}
    | {"orig_pkts": 10, "orig_ip_bytes": 1000, "resp_pkts": 12, "resp_ip_bytes": 9600},
    {"ts": 1795000001.5, "uid": "C1", "id.orig_h": "2001:db8::a", "id.orig_p": 50001, "id.resp_h": "2001:db8::5"}
    | {"id.resp_p": 443, "proto": "udp", "history": "Dd", "orig_pkts": 3, "resp_pkts": 4},
]
SSL = [{"ts": 1795000000.2, "uid": "C0", "server_name": "a.example", "next_protocol": "h2"}]
SSL += [{"ts": 1795000001.6, "uid": "C1", "server_name": "old.example", "next_protocol": "h3"}]
QUIC = [{"ts": 1795000001.6, "uid": "C1", "server_name": "b.example", "client_protocol": "h3"}]
ZEEK_FLOWS = [
    (1795000000.1, 1795000001.6, 50000, "tcp", 10, 9600, True, "a.example", "h2"),
    (1795000001.5, 1795000001.5, 50001, "udp", 3, None, False, "b.example", "h3"),
]


def zeek(path: Path) -> list[tuple[Any, ...]]:
    columns = "start_s, end_s, client_port, transport, client_packets, server_bytes, client_syn, sni, http_version"
    # The unpacked file is there as long as this.
    opened = FlowFile.open(path)
    return opened.flows.order("start_s").project(columns).fetchall()


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_json_of_zeek_is_read_with_its_ends_nested_or_renamed(tmp_path: Path) -> None:
    for name, rows in (("ssl", SSL), ("quic", QUIC)):
        (tmp_path / f"{name}.log").write_bytes(lines(rows))
    plain = [{key: value for key, value in row.items() if not key.startswith("id.")} for row in CONN]
    ends = [{key[3:]: value for key, value in row.items() if key.startswith("id.")} for row in CONN]
    nested = [{**row, "id": of} for row, of in zip(plain, ends, strict=True)]
    renamed = [{key.replace(".", "_"): value for key, value in row.items()} for row in CONN]
    for rows in (nested, renamed):
        (tmp_path / "conn.log").write_bytes(lines(rows))
        assert zeek(tmp_path / "conn.log") == ZEEK_FLOWS


@pytest.mark.parametrize(
    ("code", "separator"), [("\\x09", "\t"), ("\\x2c", ","), ("\\x7c", "|"), ("\\x20", " "), (";", ";")]
)
def test_a_log_of_zeek_has_the_separator_that_it_says(code: str, separator: str, tmp_path: Path) -> None:
    names = list(dict.fromkeys(key for row in CONN for key in row))
    rows = [
        separator.join(["#fields", *names]),
        *(separator.join(str(row.get(key, "-")) for key in names) for row in CONN),
    ]
    (tmp_path / "conn.log").write_text("\n".join([f"#separator {code}", *rows]) + "\n")
    assert [row[:7] for row in zeek(tmp_path / "conn.log")] == [row[:7] for row in ZEEK_FLOWS]


def test_another_separator_than_a_character_is_named(tmp_path: Path) -> None:
    (tmp_path / "conn.log").write_text("#separator \\x2c\\x20\n#fields, ts, uid\n")
    with pytest.raises(UnreadableFileError, match="must have one character of ASCII"):
        FlowFile.open(tmp_path / "conn.log")


def test_json_of_zeek_is_read_with_the_logs_beside_it(tmp_path: Path) -> None:
    for name, rows in (("conn", CONN), ("ssl", SSL), ("quic", QUIC)):
        (tmp_path / f"{name}.log").write_bytes(lines(rows))
    assert zeek(tmp_path / "conn.log") == ZEEK_FLOWS
    # As `JSON::TS_ISO8601` writes times; and beside logs that are compressed, or as text.
    dates = [{**CONN[0], "ts": "2026-11-18T11:06:40.100000Z"}, {**CONN[1], "ts": "2026-11-18T11:06:41.500000Z"}]
    (tmp_path / "conn.log").write_bytes(lines(dates))
    (tmp_path / "ssl.log").unlink()
    (tmp_path / "ssl.log.gz").write_bytes(gzip.compress(lines(SSL)))
    (tmp_path / "quic.log").write_text(
        "#separator \\x09\n#fields\tts\tuid\tserver_name\tclient_protocol\n1795000001.6\tC1\tb.example\th3\n"
    )
    assert [row[2:] for row in zeek(tmp_path / "conn.log")] == [row[2:] for row in ZEEK_FLOWS]
    assert zeek(tmp_path / "conn.log")[0][0] == pytest.approx(1795000000.1)
    # As `JSON::TS_MILLIS` does.
    (tmp_path / "conn.log").write_bytes(
        lines([{**row, "ts": int(time * 1000)} for row, (time, *_) in zip(CONN, ZEEK_FLOWS, strict=True)])
    )
    assert [row[0] for row in zeek(tmp_path / "conn.log")] == [pytest.approx(row[0]) for row in ZEEK_FLOWS]
    (tmp_path / "conn.log").unlink()
    (tmp_path / "conn.log.gz").write_bytes(gzip.compress(lines(CONN)))
    assert zeek(tmp_path / "conn.log.gz") == ZEEK_FLOWS


def test_other_logs_of_zeek_are_not_read_as_flows(tmp_path: Path) -> None:
    ends = {key: value for key, value in CONN[0].items() if key in ("ts", "uid") or key.startswith("id.")}
    queries = [{**ends, "proto": "udp", "query": "a.example", "rtt": 0.1}]
    names = "\t".join(queries[0])
    values = "\t".join(str(value) for value in queries[0].values())
    for content in (lines(queries), f"#separator \\x09\n#path\tdns\n#fields\t{names}\n{values}\n".encode()):
        (tmp_path / "dns.log").write_bytes(content)
        with pytest.raises(UnreadableFileError, match="is a log of Zeek, but not conn"):
            FlowFile.open(tmp_path / "dns.log")


def test_json_whose_last_line_is_cut_is_an_error_with_its_line(tmp_path: Path) -> None:
    whole = lines(CONN * 50)
    for end in (b'{"ts": 1795000', b'{"ts": 1795000000.1, "uid": "C0"'):
        (tmp_path / "conn.log").write_bytes(whole + end)
        with pytest.raises(UnreadableFileError, match=r"Malformed JSON .* in line 10[12]: "):
            analyse(tmp_path / "conn.log", ANY)


def test_errors_of_json_advise_no_options_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "conn.log").write_text(json.dumps(CONN[0], indent=1))
    with pytest.raises(UnreadableFileError, match=r"Malformed JSON .* in line 2: ") as told:
        analyse(tmp_path / "conn.log", ANY)
    assert "Try " not in str(told.value)


def test_our_records_as_json_are_read(tmp_path: Path) -> None:
    row = {"start_s": 1, "end_s": 2.5, "client_ip": "10.0.0.1", "client_port": 5000, "server_ip": "192.0.2.1"}
    rows = [{**row, "server_port": 443}, {**row, "server_port": 443, "sni": "a.example", "http_version": "h2"}]
    for content in (lines(rows), json.dumps(rows).encode(), json.dumps(rows, indent=1).encode()):
        (tmp_path / "flows.json").write_bytes(content)
        found = FlowFile.open(tmp_path / "flows.json").flows.order("sni").project("end_s, client_port, sni")
        assert found.fetchall() == [(2.5, 5000, "a.example"), (2.5, 5000, None)]


def zstandard(content: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(content)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
}
HEADER = "start_s,end_s,client_ip,client_port,server_ip,server_port,sni\n"


def our_csv(rows: int) -> bytes:
    rng = random.Random(1)
    return (
        HEADER
        + "".join(
            f"{at},{at + 1},10.0.0.{at % 250},{rng.randrange(65536)},192.0.2.1,443,n{rng.random()}\n"
            for at in range(rows)
        )
    ).encode()


@pytest.mark.parametrize("suffix", PACKED)
def test_compressed_records_are_read_whatever_their_name(suffix: str, tmp_path: Path) -> None:
    content, pack = our_csv(3000), PACKED[suffix]
    half = content.index(b"\n", len(content) // 2) + 1
    for name, packed in (
        ("flows.csv" + suffix, pack(content)),
        ("flows.csv", pack(content)),
        # As `cat` of two files, and as programs write that compress with several processors.
        ("joined.csv" + suffix, pack(content[:half]) + pack(content[half:])),
    ):
        (tmp_path / name).write_bytes(packed)
        assert analyse(tmp_path / name, ANY).summary.flows == 3000


@pytest.mark.parametrize("suffix", PACKED)
def test_a_compressed_file_that_is_damaged_or_cut_is_an_error(suffix: str, tmp_path: Path) -> None:
    packed, path = PACKED[suffix](our_csv(3000)), tmp_path / f"flows.csv{suffix}"
    for at in range(1, 20):
        path.write_bytes(packed[: len(packed) * at // 20])
        with pytest.raises(UnreadableFileError, match=rf"flows\.csv{suffix}: is compressed, and damaged or cut: "):
            FlowFile.open(path)
    if suffix == ".zst":
        # The library writes no checksum.
        return
    for at in range(1, 20):
        damaged = bytearray(packed)
        damaged[len(packed) * at // 20] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(UnreadableFileError, match="is compressed, and damaged or cut: "):
            FlowFile.open(path)


@pytest.mark.parametrize("suffix", PACKED)
def test_what_unpacks_to_much_more_than_it_is_is_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"flows.csv{suffix}"
    path.write_bytes(PACKED[suffix](HEADER.encode() + bytes(65 << 20)))
    with pytest.raises(UnreadableFileError, match="unpacks to more than 200 times its size"):
        FlowFile.open(path)


@pytest.mark.parametrize("suffix", PACKED)
def test_a_compressed_table_of_transfers_is_read(suffix: str, tmp_path: Path) -> None:
    path = write_runs(tmp_path / "runs.csv", table())
    packed = tmp_path / f"runs.csv{suffix}"
    packed.write_bytes(PACKED[suffix](path.read_bytes()))
    assert main(["determinants", str(packed), "--folds", "2"]) == 0
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(UnreadableFileError, match="is compressed, and damaged or cut"):
        analyse(packed, ANY)


def reported(path: Path, content: bytes) -> Report:
    path.write_bytes(content)
    return analyse(path, ANY)


def test_tables_as_other_programs_and_systems_write_them_are_read_or_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "flows.csv", our_csv(10)
    assert reported(path, b"\xef\xbb\xbf" + content).summary.flows == 10
    assert reported(path, content.replace(b"\n", b"\r\n")).summary.flows == 10
    assert reported(path, content.rstrip(b"\n")).summary.flows == 10
    # Two files behind each other: the second header is not a flow.
    twice = reported(path, content + content)
    assert (twice.summary.flows, twice.reasons) == (20, {"without a time, an address or a port": 1})
    with pytest.raises(NoFlowsError, match="0 records"):
        reported(path, HEADER.encode())
    for wrong, told in (
        (b"", "is empty"),
        (content.replace(b",", b";"), "has semicolons between its columns"),
        (content + b"11,12,10.0.0.1,50", "CSV Error on Line: 12"),
        (content.replace(b"end_s", b"start_s"), "two of its columns have one name"),
    ):
        with pytest.raises(MarlineError, match=told):
            reported(path, wrong)
    # Decimal commas make other columns, or no numbers.
    quoted = content.replace(b"0,1,10.0.0.0", b'"0,5","1,5",10.0.0.0')
    assert reported(path, quoted).reasons == {"without a time, an address or a port": 1}
    with pytest.raises(MissingColumnsError):
        reported(path, HEADER.replace("start_s", "START").encode() + b"1,2,a,1,b,443,\n")


def test_reasons_are_printed_and_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flows.csv"
    path.write_bytes(our_csv(5) + b"9,3,10.0.0.1,50,192.0.2.1,443,x\n,3,10.0.0.1,50,192.0.2.1,443,x\n")
    assert main(["sessions", str(path), "--http", "any", "-o", str(tmp_path / "out")]) == 0
    told = "2 of 7 records are excluded: 1 without a time, an address or a port, 1 end before they start"
    assert told in capsys.readouterr().out
    assert '<td style="white-space:nowrap">end before they start</td>' in (tmp_path / "out" / "report.html").read_text()
    document = json.loads((tmp_path / "out" / "sessions.json").read_text())
    assert document["left_out"] == {"without a time, an address or a port": 1, "end before they start": 1}
    path.write_bytes(HEADER.encode() + b"9,3,10.0.0.1,50,192.0.2.1,443,x\n")
    with pytest.raises(NoFlowsError, match="none of which can be analysed: 1 end before they start"):
        analyse(path, ANY)
