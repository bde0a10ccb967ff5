"""Tables in files: CSV, JSON and Parquet, read by header."""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Self, TypeAlias

import duckdb
import numpy as np

from marline.arrays import Numbers
from marline.errors import (
    EmptyTableError,
    MissingColumnsError,
    MissingFileError,
    NotANumberError,
    UnreadableFileError,
)
from marline.limits import MAX_TABLE_ROWS
from marline.unpacked import SUFFIXES, Plain

_NUMBERS = (str, float, int, Decimal)
"""Types of values that can be numbers; decimal ones are in files of Parquet."""


class Table:
    """A table in a file, of which only the header was read."""

    def __init__(self, file: Plain, relation: duckdb.DuckDBPyRelation) -> None:
        # Holds the file that is unpacked for it.
        self._file = file
        self._path = file.path
        self._relation = relation

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file, whose suffix determines its format: ``.csv``, ``.tsv``, ``.json``, ``.jsonl`` or ``.parquet``.

        Raises :class:`MissingFileError`, :class:`EmptyTableError` and :class:`UnreadableFileError`.
        """
        packed = path.suffix.lower() in SUFFIXES
        reader = _READERS.get((path.with_suffix("") if packed else path).suffix.lower())
        if reader is None:
            raise UnreadableFileError(
                path,
                f"its suffix must be one of {', '.join(_READERS)}, and may have one of {', '.join(SUFFIXES)} behind it",
            )
        require_file(path)
        try:
            file = Plain(path)
            if not file.beginning(1):
                raise EmptyTableError(path, "is empty")
            return cls(file, reader(duckdb.connect(), file.place))
        except duckdb.Error as error:
            raise UnreadableFileError(path, reason(error)) from error
        except OSError as error:
            raise UnreadableFileError(path, error.strerror or str(error)) from error

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self._relation.columns)

    def load(self, columns: Sequence[str], hint: str) -> "Rows":
        """Read ``columns`` of all rows. ``hint`` explains in an error where such a table comes from.

        Raises :class:`MissingColumnsError`, :class:`EmptyTableError` and :class:`UnreadableFileError`.
        """
        missing = [name for name in columns if name not in self.header]
        if missing:
            raise MissingColumnsError(self._path, missing, hint)
        try:
            rows = self._relation.project(", ".join(map(quoted, columns))).limit(MAX_TABLE_ROWS + 1).fetchall()
        except duckdb.Error as error:
            raise UnreadableFileError(self._path, reason(error)) from error
        if not rows:
            raise EmptyTableError(self._path)
        if len(rows) > MAX_TABLE_ROWS:
            raise UnreadableFileError(self._path, f"has more than {MAX_TABLE_ROWS:,} rows: take some of them")
        return Rows(self._path, dict(zip(columns, zip(*rows, strict=True), strict=True)))


class Rows:
    """Columns of a table."""

    def __init__(self, path: Path, columns: dict[str, tuple[object, ...]]) -> None:
        self._path = path
        self._columns = columns

    def texts(self, name: str) -> list[str]:
        """A column as texts; empty where a value is missing."""
        return ["" if value is None else str(value) for value in self._columns[name]]

    def numbers(self, names: Sequence[str], used: Sequence[bool]) -> Numbers:
        """A matrix of the rows that are ``used``, with a column for each name; NaN where a value is missing.

        Raises :class:`NotANumberError` for the first value that is neither missing nor a finite number.
        """
        matrix = np.empty((sum(used), len(names)))
        for at, name in enumerate(names):
            values = (pair for pair in enumerate(self._columns[name], start=1) if used[pair[0] - 1])
            matrix[:, at] = [self._number(row, name, value) for row, value in values]
        return matrix

    def _number(self, row: int, column: str, value: object) -> float:
        if value is None or value == "":
            return math.nan
        try:
            number = float(value) if isinstance(value, _NUMBERS) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise NotANumberError(self._path, row, column, str(value))
        return number


def _csv(connection: duckdb.DuckDBPyConnection, path: Path, separator: str) -> duckdb.DuckDBPyRelation:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file, delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFileError(path, "its first line is not a header of columns in UTF-8") from error
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise UnreadableFileError(path, f"there are several columns {', '.join(twice)}")
    # No types are guessed: each row has the columns of the header. Values stay texts, so that non-numbers are reported
    # with its row.
    return connection.read_csv(
        literal(path),
        header=True,
        auto_detect=False,
        sep=separator,
        quotechar='"',
        escapechar='"',
        columns=dict.fromkeys(header, "VARCHAR"),
        hive_partitioning=False,
    )


# A directory like `variant=quic` is not a column: all data of a table is in its file.
_Reader: TypeAlias = Callable[[duckdb.DuckDBPyConnection, Path], duckdb.DuckDBPyRelation]

_READERS: dict[str, _Reader] = {
    ".csv": lambda connection, path: _csv(connection, path, ","),
    ".tsv": lambda connection, path: _csv(connection, path, "\t"),
    ".json": lambda connection, path: connection.read_json(literal(path), hive_partitioning=False),
    ".jsonl": lambda connection, path: connection.read_json(
        literal(path), format="newline_delimited", hive_partitioning=False
    ),
    ".parquet": lambda connection, path: connection.read_parquet(literal(path), hive_partitioning=False),
}


def require_file(path: Path) -> None:
    """Raise :class:`MissingFileError` or :class:`UnreadableFileError` unless there is a file."""
    if path.is_dir():
        raise UnreadableFileError(path, "is not a file, but a directory: name a file in it")
    if not path.exists():
        raise MissingFileError(path)
    if not path.is_file():
        raise UnreadableFileError(path, "is not a regular file: save its content to one, and name that")


def literal(path: Path) -> str:
    """The path as a pattern that matches only itself; absolute, so that it is not mistaken for a URL.

    Raises :class:`UnreadableFileError`.
    """
    name = str(path.absolute())
    if not name.isascii() and name.encode(errors="ignore").decode() != name:
        raise UnreadableFileError(path, "its name is not in UTF-8, and must be: give it another")
    return re.sub(r"([*?\[])", r"[\1]", name)


def quoted(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def reason(error: duckdb.Error) -> str:
    """An error message in one line, without the library's options and the content of the file."""
    report = re.split(r"Possible fixes|\bTry (?:setting|auto-detecting) ", str(error))[0]
    lines = (line.strip() for line in report.splitlines())
    return "; ".join(line for line in lines if line and not line.startswith("Original Line"))
