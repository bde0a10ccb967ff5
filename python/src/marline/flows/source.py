"""Records of flows in files of several programs, as one set of columns."""

import csv
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import duckdb

from marline.errors import EmptyTableError, MissingColumnsError, UnreadableFileError
from marline.flows.columns import COLUMNS, NEEDED, possible
from marline.flows.formats import (
    MARLINE,
    NFDUMP,
    NFDUMP_KEYS,
    NFDUMP_NEEDS,
    NFDUMP_RECORD,
    TSTAT,
    ZEEK,
    ZEEK_CONN,
    ZEEK_OWN,
    Format,
    is_nfdump,
    is_zeek,
    nfdump_columns,
    zeek_column,
    zeek_keys,
)
from marline.flows.joining import bidirectional, whole
from marline.flows.reading import (
    BYTE_ORDER_MARK,
    CSV,
    NFDUMP_CSV,
    PARQUET,
    TSTAT_LOG,
    ZEEK_LOG,
    first_object,
    json_objects,
    refuse_others,
    refuse_separator,
    require_end,
    text,
    unguarded,
    zeek_separator,
)
from marline.tables import literal, quoted, reason, require_file
from marline.unpacked import SUFFIXES, Plain

MEMORY_SHARE = 0.1
"""The share of the machine's memory that the engine uses before it writes to disk."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The converted form of a file."""

    format: str
    raw: duckdb.DuckDBPyRelation
    """As it is written; of programs other than ours, nothing is kept but :data:`COLUMNS`."""
    records: duckdb.DuckDBPyRelation
    """Each line with :data:`COLUMNS`, and with all others that it has."""
    relation: duckdb.DuckDBPyRelation
    has: frozenset[str]
    """The :data:`COLUMNS` that it contains."""
    in_parts: bool = False


class FlowFile:
    """Records of flows in a file, of which only the header was read."""

    def __init__(self, file: Plain, read: _Read) -> None:
        self._file = file
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
            file = Plain(path)
            beginning = file.beginning()
            if not beginning.strip():
                raise EmptyTableError(path, "is empty")
            return cls(file, _read(connection, file, beginning))
        except duckdb.Error as error:
            raise UnreadableFileError(path, reason(error)) from error
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

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
        """The :data:`COLUMNS` that the records contain."""
        return self._read.has

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The flows with :data:`COLUMNS`, NULL if a record does not contain them; in no order."""
        return self._read.relation

    @property
    def flows(self) -> duckdb.DuckDBPyRelation:
        """The valid flows, without the excluded records."""
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
        """The number of records of each version of HTTP, by ``http_version``."""
        try:
            counts = self.relation.aggregate("http_version, count(*)", "http_version").fetchall()
        except duckdb.Error as error:
            raise UnreadableFileError(self.path, reason(error)) from error
        return dict(counts)


def connect(*, keep_order: bool = False) -> duckdb.DuckDBPyConnection:
    """An engine that writes to disk what is more than its share of the memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    # The engine's own choice is the working directory, which may not be writable.
    beside = {} if os.access(".", os.W_OK) else {"temp_directory": f"{tempfile.gettempdir()}/marline-{os.getpid()}"}
    return duckdb.connect(
        config={"preserve_insertion_order": keep_order, "memory_limit": f"{int(memory * MEMORY_SHARE)} MiB", **beside}
    )


def _read(connection: duckdb.DuckDBPyConnection, file: Plain, beginning: bytes) -> _Read:
    path = file.path
    if beginning.startswith(PARQUET):
        require_end(file)
        return _ours(path, connection.read_parquet(literal(file.place), hive_partitioning=False))
    refuse_others(path, beginning)
    decoded = beginning.decode("utf-8", errors="replace")
    found = first_object(file, decoded)
    if found is not None:
        return _of_json(connection, file, decoded, found)
    first = decoded.removeprefix(BYTE_ORDER_MARK).splitlines()[0]
    if first.startswith("#separator"):
        return _theirs(path, _zeek(connection, file, None), ZEEK)
    if re.match(r"#\d*#?c(lient)?_ip(:1)?\s", first):
        names = [name.split(":")[0] for name in re.sub(r"^#(\d+#)?", "", first).split()]
        return _theirs(path, text(connection, file, names, TSTAT_LOG), TSTAT)
    names = next(csv.reader([first]))
    if is_nfdump(names):
        return _nfdump(path, text(connection, file, names, NFDUMP_CSV))
    refuse_separator(path, first)
    return _ours(path, unguarded(text(connection, file, names, CSV)))


def _of_json(connection: duckdb.DuckDBPyConnection, file: Plain, beginning: str, found: dict[str, object]) -> _Read:
    """Objects whose kind the first of them shows. Each may lack keys without a value."""
    keys = frozenset(found)
    if is_zeek(found):
        return _theirs(file.path, _zeek(connection, file, keys), ZEEK)
    if is_nfdump(keys):
        return _nfdump(file.path, json_objects(connection, file, NFDUMP_KEYS, beginning))
    _need(file.path, keys, NEEDED)
    # The engine's names are case-insensitive.
    columns = {name.lower(): name for name in (*keys, *COLUMNS)}
    return _ours(file.path, json_objects(connection, file, columns.values(), beginning))


def _nfdump(path: Path, raw: duckdb.DuckDBPyRelation) -> _Read:
    missing = [name for name, known in NFDUMP_NEEDS.items() if not known & set(raw.columns)]
    if missing:
        raise MissingColumnsError(
            path, missing, "`nfdump -o csv` writes them, unless it aggregates or has a form of its own"
        )
    # In some versions a summary follows, whose lines are no records.
    lines = raw.project(nfdump_columns(raw.columns)).filter(NFDUMP_RECORD)
    return _theirs(path, lines, NFDUMP, bidirectional)


def _ours(path: Path, raw: duckdb.DuckDBPyRelation) -> _Read:
    """A table with our columns, whose flows may be in several parts."""
    records = _flows(path, raw, MARLINE)
    has = _has(raw, MARLINE)
    in_parts = {"flow_id", "part"} <= set(raw.columns) and bool(
        raw.filter("TRY_CAST(part AS BIGINT) > 0").limit(1).fetchall()
    )
    relation = _joined(records, whole) if in_parts else records.project(", ".join(COLUMNS))
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
    """Flows of several records. Invalid records are not joined, and stay as they are: they are counted."""
    impossible = records.filter(f"NOT {possible(COLUMNS)}").project(", ".join(COLUMNS))
    return join(records.filter(possible(COLUMNS))).union(impossible)


def _flows(path: Path, raw: duckdb.DuckDBPyRelation, of: Format) -> duckdb.DuckDBPyRelation:
    """Our columns, and behind them those of the file that are not ours."""
    _need(path, raw.columns, of.needs)
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


def _need(path: Path, columns: Collection[str], needs: Collection[str]) -> None:
    missing = [name for name in needs if name not in columns]
    if missing:
        raise MissingColumnsError(
            path,
            missing,
            "flows are in tables with these columns, Tstat's log_tcp_complete, Zeek's conn.log and `nfdump -o csv`",
        )


def _zeek(connection: duckdb.DuckDBPyConnection, file: Plain, keys: Collection[str] | None) -> duckdb.DuckDBPyRelation:
    """``conn.log`` with the data of ``ssl.log`` and ``quic.log`` beside it about the same connections.

    A QUIC connection is in both; it is counted once, and ``quic.log`` takes precedence. ``keys`` are those of the first
    object, if it is JSON.
    """
    conn = _zeek_log(connection, file, ZEEK_CONN)
    _need(file.path, conn.columns, ZEEK.needs)
    if not set(ZEEK_OWN) & set(conn.columns if keys is None else keys):
        raise UnreadableFileError(
            file.path, f"is a log of Zeek, but not conn.log: it has none of the columns {', '.join(ZEEK_OWN)}"
        )
    told = [conn.project("\"uid\", '' AS sni, '' AS alpn, 0 AS trust").limit(0)]
    for name, alpn, trust in (("ssl", "next_protocol", 1), ("quic", "client_protocol", 2)):
        beside = _beside(file.path, name)
        if beside is None:
            continue
        log = _zeek_log(connection, file.beside(beside), ("uid", "server_name", alpn))
        has = [quoted(column) if column in log.columns else "NULL" for column in ("uid", "server_name", alpn)]
        told.append(log.project(f"{has[0]} AS uid, {has[1]} AS sni, {has[2]} AS alpn, {trust} AS trust"))
    every = told[0]
    for one in told[1:]:
        every = every.union(one)
    best = every.aggregate("uid, arg_max(sni, trust) AS sni, arg_max(alpn, trust) AS alpn", "uid")
    columns = ", ".join(f"conn.{quoted(name)}" for name in conn.columns)
    joined = conn.set_alias("conn").join(best.set_alias("told"), "conn.uid = told.uid", how="left")
    return joined.project(f"{columns}, told.sni AS sni, told.alpn AS alpn")


def _beside(conn: Path, name: str) -> Path | None:
    """Another log of the same time, compressed or not as its neighbour is, or the other way."""
    if "conn" not in conn.name:
        return None
    same = conn.with_name(conn.name.replace("conn", name))
    plain = same.with_suffix("") if same.suffix in SUFFIXES else same
    candidates = [same, plain, *(plain.with_name(plain.name + suffix) for suffix in SUFFIXES)]
    return next((path for path in candidates if path.is_file()), None)


def _zeek_log(connection: duckdb.DuckDBPyConnection, file: Plain, columns: Iterable[str]) -> duckdb.DuckDBPyRelation:
    """A log of Zeek, as text or JSON; of the latter, these columns."""
    beginning = file.beginning()
    decoded = beginning.decode("utf-8", errors="replace")
    if first_object(file, decoded) is not None:
        wanted = list(columns)
        keys = dict.fromkeys(key for name in wanted for key in zeek_keys(name))
        return json_objects(connection, file, keys, decoded).project(", ".join(map(zeek_column, wanted)))
    separator = zeek_separator(file, decoded)
    fields = re.search(rf"^#fields{re.escape(separator)}(.*)$", decoded, re.M)
    if fields is None:
        raise UnreadableFileError(file.path, "has no line `#fields` near its beginning")
    names = fields[1].rstrip("\r").split(separator)
    return text(connection, file, names, replace(ZEEK_LOG, separator=separator))
