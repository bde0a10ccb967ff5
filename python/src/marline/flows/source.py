"""Records of flows in files of several programs, as one set of columns."""

import csv
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import duckdb

from marline.errors import EmptyTableError, MissingColumnsError, UnreadableFileError
from marline.flows.columns import COLUMNS, NEEDED, possible
from marline.tables import literal, quoted, reason, require_file, text_literal

MEMORY_SHARE = 0.1
"""How much of the machine's memory the engine uses before it writes to disk."""

_OTHER_END = {"client": "server", "server": "client"}

REJOIN_S = 120
"""Records of one connection that are this close belong together: twice the usual active time-out of an exporter."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a program become flows."""

    name: str
    text: Mapping[str, str]
    """An expression over its columns, which are texts unless the file is Parquet, for each of ours that it has."""
    needs: tuple[str, ...]
    """Its columns without which nothing can be done."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What became of a file."""

    format: str
    raw: duckdb.DuckDBPyRelation
    """As it is written; of programs other than ours, nothing is kept but :data:`COLUMNS`."""
    records: duckdb.DuckDBPyRelation
    """Each line with :data:`COLUMNS`, and with all others that it has."""
    relation: duckdb.DuckDBPyRelation
    has: frozenset[str]
    """Which of :data:`COLUMNS` it says something of."""
    in_parts: bool = False


class FlowFile:
    """Records of flows in a file, of which only the header was looked at."""

    def __init__(self, path: Path, read: _Read) -> None:
        self._path = path
        self._read = read

    @classmethod
    def open(cls, path: Path, connection: duckdb.DuckDBPyConnection | None = None) -> Self:
        """Open a file and find out from its beginning which program wrote it.

        Raises :class:`MissingFileError`, :class:`EmptyTableError`, :class:`MissingColumnsError` and
        :class:`UnreadableFileError`.
        """
        require_file(path)
        connection = connection or connect()
        try:
            with path.open("rb") as file:
                beginning = file.read(1 << 16)
            if not beginning:
                raise EmptyTableError(path, "is empty")
            return cls(path, _read(connection, path, beginning))
        except duckdb.Error as error:
            raise UnreadableFileError(path, reason(error)) from error
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def format(self) -> str:
        """The program whose records these are."""
        return self._read.format

    @property
    def in_parts(self) -> bool:
        """Whether ``marline flow --active-timeout`` cut flows into several records, which are joined."""
        return self._read.in_parts

    @property
    def has(self) -> frozenset[str]:
        """Those of :data:`COLUMNS` that the records say something of."""
        return self._read.has

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The flows with :data:`COLUMNS`, NULL where a record does not say; in no order."""
        return self._read.relation

    @property
    def flows(self) -> duckdb.DuckDBPyRelation:
        """Those that can be: the records that are left out are not among them."""
        return self.relation.filter(possible(COLUMNS))

    def copied(self) -> tuple[duckdb.DuckDBPyRelation, list[str]]:
        """The records as the file has them, in its order if the engine keeps it, and the names of its columns.

        There may be more columns than these, of :data:`COLUMNS`. Those are of the types that we give them, the others
        as they were. Records of other programs have :data:`COLUMNS` only.
        """
        if self.format != MARLINE.name:
            return self.relation, list(COLUMNS)
        return self._read.records, self._read.raw.columns

    def versions(self) -> dict[str | None, int]:
        """How many records are of each version of HTTP, by ``http_version``."""
        try:
            counts = self.relation.aggregate("http_version, count(*)", "http_version").fetchall()
        except duckdb.Error as error:
            raise UnreadableFileError(self._path, reason(error)) from error
        return dict(counts)


def connect(*, keep_order: bool = False) -> duckdb.DuckDBPyConnection:
    """An engine that writes to disk what is more than its share of the memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    # The engine's own choice is the working directory, where one may not be allowed to write.
    beside = {} if os.access(".", os.W_OK) else {"temp_directory": f"{tempfile.gettempdir()}/marline-{os.getpid()}"}
    return duckdb.connect(
        config={"preserve_insertion_order": keep_order, "memory_limit": f"{int(memory * MEMORY_SHARE)} MiB", **beside}
    )


def _read(connection: duckdb.DuckDBPyConnection, path: Path, beginning: bytes) -> _Read:
    if beginning.startswith(_PARQUET):
        _require_end(path)
        return _ours(path, connection.read_parquet(literal(path), hive_partitioning=False))
    _refuse_binary(path, beginning)
    first = beginning.splitlines()[0].decode("utf-8", errors="replace").removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    if first.startswith("#separator"):
        return _theirs(path, _zeek(connection, path, beginning), ZEEK)
    if re.match(r"#\d*#?c(lient)?_ip(:1)?\s", first):
        names = [name.split(":")[0] for name in re.sub(r"^#(\d+#)?", "", first).split()]
        return _theirs(path, _text(connection, path, names, _TSTAT_LOG), TSTAT)
    names = next(csv.reader([first]))
    if {"ts", "te", "sa", "da"} <= set(names):
        raw = _text(connection, path, names, _NFDUMP)
        _need(path, raw, NFDUMP)
        # The list ends with a summary, whose lines are no records.
        return _theirs(path, raw.filter("TRY_CAST(ts AS TIMESTAMP) IS NOT NULL"), NFDUMP, _bidirectional)
    _refuse_separator(path, first)
    return _ours(path, _unguarded(_text(connection, path, names, _CSV)))


def _ours(path: Path, raw: duckdb.DuckDBPyRelation) -> _Read:
    """A table with our columns, whose flows may be in several parts."""
    records = _flows(path, raw, MARLINE)
    has = _has(raw, MARLINE)
    in_parts = {"flow_id", "part"} <= set(raw.columns) and bool(
        raw.filter("TRY_CAST(part AS BIGINT) > 0").limit(1).fetchall()
    )
    relation = _joined(records, _whole) if in_parts else records.project(", ".join(COLUMNS))
    return _Read(MARLINE.name, raw, records, relation, has, in_parts)


def _theirs(
    path: Path,
    raw: duckdb.DuckDBPyRelation,
    of: Format,
    join: Callable[[duckdb.DuckDBPyRelation], duckdb.DuckDBPyRelation] | None = None,
) -> _Read:
    """Records of another program; ``join`` makes flows of them if they are parts of such."""
    records = _flows(path, raw, of).project(", ".join(COLUMNS))
    return _Read(of.name, raw, records, records if join is None else _joined(records, join), _has(raw, of))


def _joined(
    records: duckdb.DuckDBPyRelation, join: Callable[[duckdb.DuckDBPyRelation], duckdb.DuckDBPyRelation]
) -> duckdb.DuckDBPyRelation:
    """Flows of several records. What cannot be is in none of them, and stays as it is: it is counted."""
    impossible = records.filter(f"NOT {possible(COLUMNS)}").project(", ".join(COLUMNS))
    return join(records.filter(possible(COLUMNS))).union(impossible)


_PARQUET = b"PAR1"

_CAPTURES = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a")
"""How files of pcap, of micro- and nanoseconds and both byte orders, and of pcapng begin."""


def _require_end(path: Path) -> None:
    """The columns are described at the end of a file of Parquet, which one that was cut does not have."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_PARQUET)))
        if file.read() != _PARQUET:
            raise UnreadableFileError(path, "is cut, its end is missing: copy it again, or write it anew")


def _refuse_binary(path: Path, beginning: bytes) -> None:
    """Say of what is often taken for a table what it is."""
    if beginning.startswith(_CAPTURES):
        raise UnreadableFileError(
            path, f"is a capture of packets: `marline flow {path.name} -o flows.parquet` makes flows of it"
        )
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableFileError(
            path, "is text in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it"
        )


def _refuse_separator(path: Path, header: str) -> None:
    """Say what separates the columns of a table that has ours, but not with commas between them."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if set(NEEDED) <= set(next(csv.reader([header], delimiter=separator))):
            raise UnreadableFileError(path, f"has {name} between its columns, and must have commas")


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a text file is written."""

    separator: str
    header_lines: int = 1
    comment: str = ""
    quote: str = ""
    padded: bool = True
    """Whether lines may end early. One with more columns than the header is an error either way."""


_CSV = _Layout(",", quote='"', padded=False)
_NFDUMP = _Layout(",")
_TSTAT_LOG = _Layout(" ")
_ZEEK_LOG = _Layout("\t", header_lines=0, comment="#")


def _text(
    connection: duckdb.DuckDBPyConnection, path: Path, names: list[str], layout: _Layout
) -> duckdb.DuckDBPyRelation:
    """A text file whose columns are known. What is no line of it, as after a quote that is not closed, is an error."""
    if len(set(names)) < len(names) or not all(names):
        raise UnreadableFileError(
            path, "its first line is no header: two of its columns have one name, or one has none"
        )
    return connection.read_csv(
        literal(path),
        header=False,
        auto_detect=False,
        sep=layout.separator,
        quotechar=layout.quote,
        escapechar=layout.quote,
        comment=layout.comment,
        skiprows=layout.header_lines,
        columns=dict.fromkeys(names, "VARCHAR"),
        null_padding=layout.padded,
        hive_partitioning=False,
    )


_GUARDED: Final = r"^'([-=+@\t\r])"
"""A quote before what a cell begins with that programs for spreadsheets take for a formula."""


def _unguarded(raw: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Texts without the quote that `marline flow` writes before what a spreadsheet would run, as names of servers."""
    pattern, quote = text_literal(_GUARDED), text_literal("'")

    def column(name: str) -> str:
        cell = quoted(name)
        stripped = rf"regexp_replace({cell}, {pattern}, '\1')"
        return f"CASE WHEN starts_with({cell}, {quote}) THEN {stripped} ELSE {cell} END AS {cell}"

    return raw.project(", ".join(map(column, raw.columns)))


def _flows(path: Path, raw: duckdb.DuckDBPyRelation, of: Format) -> duckdb.DuckDBPyRelation:
    """Our columns, and behind them those of the file that are not ours."""
    _need(path, raw, of)
    has = _has(raw, of)

    def expression(name: str, kind: str) -> str:
        return f"TRY_CAST({of.text[name] if name in has else 'NULL'} AS {kind}) AS {name}"

    ours = [expression(name, kind) for name, kind in COLUMNS.items()]
    # The engine takes names of other capitals for the same.
    others = [quoted(name) for name in raw.columns if name.lower() not in COLUMNS]
    return raw.project(", ".join([*ours, *others]))


def _has(raw: duckdb.DuckDBPyRelation, of: Format) -> frozenset[str]:
    """Those of our columns that can be made of a file's."""
    columns = set(raw.columns)
    return frozenset(name for name, text in of.text.items() if columns.issuperset(re.findall(r'"([^"]+)"', text)))


def _need(path: Path, raw: duckdb.DuckDBPyRelation, of: Format) -> None:
    missing = [name for name in of.needs if name not in raw.columns]
    if missing:
        raise MissingColumnsError(
            path,
            missing,
            "flows are in tables with these columns, Tstat's log_tcp_complete, Zeek's conn.log and `nfdump -o csv`",
        )


def _zeek(connection: duckdb.DuckDBPyConnection, path: Path, beginning: bytes) -> duckdb.DuckDBPyRelation:
    """``conn.log`` with what ``ssl.log`` and ``quic.log`` beside it say of the same connections.

    A QUIC connection is in both; it is counted once, and ``quic.log`` is believed.
    """
    conn = _zeek_log(connection, path, beginning)
    _need(path, conn, ZEEK)
    told = [conn.project("\"uid\", '' AS sni, '' AS alpn, 0 AS trust").limit(0)]
    for file, sni, alpn, trust in (
        ("ssl.log", '"server_name"', '"next_protocol"', 1),
        ("quic.log", '"server_name"', '"client_protocol"', 2),
    ):
        beside = path.with_name(path.name.replace("conn", file.removesuffix(".log")))
        if beside == path or not beside.is_file():
            continue
        with beside.open("rb") as opened:
            log = _zeek_log(connection, beside, opened.read(1 << 16))
        has = [name if name.strip('"') in log.columns else "NULL" for name in ('"uid"', sni, alpn)]
        told.append(log.project(f"{has[0]} AS uid, {has[1]} AS sni, {has[2]} AS alpn, {trust} AS trust"))
    every = told[0]
    for one in told[1:]:
        every = every.union(one)
    best = every.aggregate("uid, arg_max(sni, trust) AS sni, arg_max(alpn, trust) AS alpn", "uid")
    columns = ", ".join(f"conn.{quoted(name)}" for name in conn.columns)
    joined = conn.set_alias("conn").join(best.set_alias("told"), "conn.uid = told.uid", how="left")
    return joined.project(f"{columns}, told.sni AS sni, told.alpn AS alpn")


def _zeek_log(connection: duckdb.DuckDBPyConnection, path: Path, beginning: bytes) -> duckdb.DuckDBPyRelation:
    fields = re.search(rb"^#fields\t(.*)$", beginning, re.M)
    if fields is None:
        raise UnreadableFileError(path, "has no line `#fields` near its beginning")
    names = fields[1].decode("utf-8", errors="replace").rstrip("\r").split("\t")
    return _text(connection, path, names, _ZEEK_LOG)


def _whole(records: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Records of parts of flows, joined to flows.

    A number of a flow is its own within one file only; in tables of several, a flow begins with its part 0.
    """
    same = "flow_id, client_ip, client_port, server_ip, server_port, transport"
    numbered = records.project(
        f"*, sum(CASE WHEN TRY_CAST(part AS BIGINT) = 0 THEN 1 ELSE 0 END) OVER (PARTITION BY {same} "
        "ORDER BY start_s, TRY_CAST(part AS BIGINT) ROWS UNBOUNDED PRECEDING) AS number"
    )
    told = ", ".join(f"arg_min({name}, start_s) AS {name}" for name in ("sni", "http_version", "label_source"))
    return _summed(numbered, same, told)


def _bidirectional(records: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Records of single directions, joined to flows.

    Those of both directions and of one connection that an active time-out had split are one flow; the client is the
    end with the higher port.
    """
    turned = "server_port > client_port OR (server_port = client_port AND server_ip > client_ip)"
    ends = [
        f"CASE WHEN turned THEN {other}_{part} ELSE {end}_{part} END AS {end}_{part}"
        for end, other in _OTHER_END.items()
        for part in ("ip", "port", "packets", "bytes", "syn", "ack", "fin")
    ]
    oriented = records.project(f"*, {turned} AS turned").project(f"start_s, end_s, transport, {', '.join(ends)}")
    same = "client_ip, client_port, server_ip, server_port, transport"
    apart = oriented.project(
        f"*, start_s - max(end_s) OVER (PARTITION BY {same} ORDER BY start_s, end_s "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS apart_s"
    )
    numbered = apart.project(
        f"*, sum(CASE WHEN apart_s <= {REJOIN_S} THEN 0 ELSE 1 END) OVER "
        f"(PARTITION BY {same} ORDER BY start_s, end_s ROWS UNBOUNDED PRECEDING) AS number"
    )
    return _summed(numbered, same, "NULL AS sni, NULL AS http_version, NULL AS label_source")


def _summed(numbered: duckdb.DuckDBPyRelation, same: str, told: str) -> duckdb.DuckDBPyRelation:
    """Records of one number among the ``same``, as one; ``told`` is what becomes of names and versions."""
    sums = ", ".join(f"sum({end}_{part}) AS {end}_{part}" for end in _OTHER_END for part in ("packets", "bytes"))
    flags = ", ".join(f"bool_or({end}_{part}) AS {end}_{part}" for end in _OTHER_END for part in ("syn", "ack", "fin"))
    joined = numbered.aggregate(
        f"min(start_s) AS start_s, max(end_s) AS end_s, {same}, {sums}, {flags}, {told}", f"{same}, number"
    )
    return joined.project(", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items()))


def _columns(pairs: Mapping[str, str]) -> dict[str, str]:
    return {ours: f'"{theirs}"' for ours, theirs in pairs.items()}


def _version(alpn: str) -> str:
    return (
        f"CASE WHEN {alpn} = 'h2' THEN 'h2' WHEN {alpn} LIKE 'h3%' THEN 'h3' WHEN {alpn} LIKE 'http/1%' THEN 'h1' "
        f"WHEN {alpn} IS NOT NULL AND {alpn} NOT IN ('', '-', '(empty)') THEN 'other' END"
    )


def _milliseconds(column: str) -> str:
    return f'TRY_CAST("{column}" AS DOUBLE) / 1000'


def _tstat_end(ours: str, theirs: str) -> dict[str, str]:
    return {
        f"{ours}_ip": f'"{theirs}_ip"',
        f"{ours}_port": f'"{theirs}_port"',
        f"{ours}_packets": f'"{theirs}_pkts_all"',
        f"{ours}_bytes": f'"{theirs}_bytes_all"',
        f"{ours}_syn": f'TRY_CAST("{theirs}_syn_cnt" AS BIGINT) > 0',
        f"{ours}_ack": f'TRY_CAST("{theirs}_ack_cnt" AS BIGINT) > 0',
        f"{ours}_fin": f'TRY_CAST("{theirs}_fin_cnt" AS BIGINT) > 0',
    }


MARLINE = Format("marline", _columns({name: name for name in COLUMNS}), NEEDED)
"""A table with our columns, CSV or Parquet."""

# A bitmap of what the server's ServerHello chose: NPN 2 HTTP, 4 SPDY, 8 H2; ALPN 32, 64, 128. The study takes SPDY
# and HTTP/2 together.
_TSTAT_CHOSEN = 'TRY_CAST("s_npnalpn" AS INTEGER)'

TSTAT = Format(
    "tstat",
    {
        **_tstat_end("client", "c"),
        **_tstat_end("server", "s"),
        "start_s": _milliseconds("first"),
        "end_s": _milliseconds("last"),
        "transport": "'tcp'",
        "sni": "nullif(\"c_tls_SNI\", '-')",
        "http_version": f"CASE WHEN {_TSTAT_CHOSEN} & 204 > 0 THEN 'h2' WHEN {_TSTAT_CHOSEN} & 34 > 0 THEN 'h1' END",
        "label_source": f"CASE WHEN {_TSTAT_CHOSEN} & 238 > 0 THEN 'handshake' END",
    },
    ("c_ip", "c_port", "s_ip", "s_port", "first", "last", "c_bytes_all", "s_bytes_all"),
)
"""Tstat's ``log_tcp_complete``, with the sets of columns that it was configured for."""


def _seen(direction: str, flag: str) -> str:
    """Whether Zeek's history has a letter, in capitals for the originator."""
    return f"contains(\"history\", '{flag.upper() if direction == 'orig' else flag}')"


def _zeek_end(ours: str, theirs: str) -> dict[str, str]:
    opening = "s" if theirs == "orig" else "h"
    return {
        f"{ours}_ip": f'"id.{theirs}_h"',
        f"{ours}_port": f'"id.{theirs}_p"',
        f"{ours}_packets": f'"{theirs}_pkts"',
        f"{ours}_bytes": f'"{theirs}_ip_bytes"',
        f"{ours}_syn": _seen(theirs, opening),
        f"{ours}_ack": _seen(theirs, "a"),
        f"{ours}_fin": _seen(theirs, "f"),
    }


_ZEEK_VERSION = _version('"alpn"')

ZEEK = Format(
    "zeek",
    {
        **_zeek_end("client", "orig"),
        **_zeek_end("server", "resp"),
        "start_s": '"ts"',
        "end_s": 'TRY_CAST("ts" AS DOUBLE) + coalesce(TRY_CAST(nullif("duration", \'-\') AS DOUBLE), 0)',
        "transport": '"proto"',
        "sni": "nullif(nullif(\"sni\", '-'), '')",
        "http_version": _ZEEK_VERSION,
        "label_source": f"CASE WHEN {_ZEEK_VERSION} IS NOT NULL THEN 'handshake' END",
    },
    ("ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"),
)
"""Zeek's ``conn.log``."""


def _flag(letter: str) -> str:
    return f"contains(\"flg\", '{letter}')"


_BOTH = 'TRY_CAST("opkt" AS BIGINT) > 0'

NFDUMP = Format(
    "nfdump",
    {
        "start_s": 'epoch(TRY_CAST("ts" AS TIMESTAMP))',
        "end_s": 'epoch(TRY_CAST("ts" AS TIMESTAMP)) + TRY_CAST("td" AS DOUBLE)',
        "client_ip": 'trim("sa")',
        "client_port": '"sp"',
        "server_ip": 'trim("da")',
        "server_port": '"dp"',
        "transport": 'lower(trim("pr"))',
        "client_packets": '"ipkt"',
        "client_bytes": '"ibyt"',
        "server_packets": '"opkt"',
        "server_bytes": '"obyt"',
        "client_syn": _flag("S"),
        "client_ack": _flag("A"),
        "client_fin": _flag("F"),
        # A joined record has the flags of both directions in one field.
        "server_syn": f"CASE WHEN {_BOTH} THEN {_flag('S')} END",
        "server_ack": f"CASE WHEN {_BOTH} THEN {_flag('A')} END",
        "server_fin": f"CASE WHEN {_BOTH} THEN {_flag('F')} END",
    },
    ("ts", "td", "sa", "da", "sp", "dp", "pr", "flg", "ipkt", "ibyt", "opkt", "obyt"),
)
"""``nfdump -o csv``, of single directions or joined by ``-B``; its starts are of whole seconds."""
