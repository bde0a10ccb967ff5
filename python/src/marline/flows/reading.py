"""Files of text and JSON as relations, and checks for files of other kinds."""

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import duckdb

from marline.errors import UnreadableFileError
from marline.flows.columns import NEEDED
from marline.tables import literal, quoted, text_literal
from marline.unpacked import Plain

PARQUET: Final = b"PAR1"

BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"

_CAPTURES: Final = (
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x0a\x0d\x0d\x0a",
)
"""The first bytes of pcap files, of micro- and nanoseconds and both byte orders, and of pcapng."""

_NFCAPD: Final = (b"\x0c\xa5", b"\xa5\x0c")
"""The first bytes of the files that nfdump reads."""

_NO_FLOWS: Final = (b"No matching flows", b"No matched flows")
"""Lines that nfdump writes in place of records, in each of its forms."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The dialect of a text file."""

    separator: str
    header_lines: int = 1
    comment: str = ""
    quote: str = ""
    padded: bool = True
    """Whether lines may end early. One with more columns than the header is an error either way."""


CSV: Final = Layout(",", quote='"', padded=False)
NFDUMP_CSV: Final = Layout(",")
TSTAT_LOG: Final = Layout(" ")
ZEEK_LOG: Final = Layout("\t", header_lines=0, comment="#")


def text(
    connection: duckdb.DuckDBPyConnection, file: Plain, names: list[str], layout: Layout
) -> duckdb.DuckDBPyRelation:
    """A text file whose columns are known. Invalid lines, as after an unclosed quote, are errors."""
    if len(set(names)) < len(names) or not all(names):
        raise UnreadableFileError(
            file.path, "its first line is not a header: two of its columns have one name, or one has none"
        )
    return connection.read_csv(
        literal(file.place),
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


def json_objects(
    connection: duckdb.DuckDBPyConnection, file: Plain, columns: Iterable[str], beginning: str
) -> duckdb.DuckDBPyRelation:
    """Objects of JSON, in an array or a line each; of each, these columns as texts, NULL where it has none."""
    form: Literal["array", "newline_delimited"] = "array" if beginning.lstrip().startswith("[") else "newline_delimited"
    return connection.read_json(
        literal(file.place), format=form, columns=dict.fromkeys(columns, "VARCHAR"), hive_partitioning=False
    )


def zeek_separator(file: Plain, beginning: str) -> str:
    """The character between the columns of a log, by its first line. Raises :class:`UnreadableFileError`."""
    said = re.match(r"#separator (\S*|.)\r?$", beginning.removeprefix(BYTE_ORDER_MARK), re.M)
    code = re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), said[1]) if said else "\t"
    if len(code) != 1 or not code.isascii():
        raise UnreadableFileError(
            file.path, f"has {said[1] if said else code!r} between its columns, and must have one character of ASCII"
        )
    return code


def first_object(file: Plain, beginning: str) -> dict[str, object] | None:
    """The first object of a file of JSON, and None for anything else. Raises :class:`UnreadableFileError`."""
    start = beginning.lstrip()
    if start.startswith(BYTE_ORDER_MARK):
        start = start.removeprefix(BYTE_ORDER_MARK).lstrip()
        if start.startswith(("{", "[")):
            raise UnreadableFileError(file.path, "is JSON with a byte order mark, which JSON must not have: remove it")
    if not start.startswith(("{", "[")):
        return None
    start = start.removeprefix("[").lstrip()
    if start.startswith("]"):
        raise UnreadableFileError(file.path, "is an empty array of JSON: there are no records in it")
    try:
        found, _ = json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(file.path, f"begins as JSON, and its first object cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableFileError(
            file.path, "is JSON, and not of records: they must be objects, in an array or a line each"
        )
    return found


def unguarded(raw: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Texts without the quote that `marline flow` writes before server names that a spreadsheet would execute."""
    pattern, quote = text_literal(r"^'([-=+@\t\r])"), text_literal("'")

    def column(name: str) -> str:
        cell = quoted(name)
        stripped = rf"regexp_replace({cell}, {pattern}, '\1')"
        return f"CASE WHEN starts_with({cell}, {quote}) THEN {stripped} ELSE {cell} END AS {cell}"

    return raw.project(", ".join(map(column, raw.columns)))


def require_end(file: Plain) -> None:
    """The columns are described at the end of a file of Parquet, which a truncated file does not have."""
    with file.place.open("rb") as opened:
        opened.seek(max(0, file.place.stat().st_size - len(PARQUET)))
        if opened.read() != PARQUET:
            raise UnreadableFileError(file.path, "is cut, its end is missing: copy it again, or write it anew")


def refuse_others(path: Path, beginning: bytes) -> None:
    """Raise an error that names the kind of a file which is often mistaken for a table."""
    if beginning.startswith(_CAPTURES):
        raise UnreadableFileError(
            path, f"is a capture of packets: `marline flow {path.name} -o flows.parquet` makes flows of it"
        )
    if beginning.startswith(_NFCAPD):
        raise UnreadableFileError(
            path, f"is a file of nfcapd: `nfdump -r {path.name} -o csv > flows.csv` writes what can be read"
        )
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableFileError(
            path, "is text in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it"
        )
    if any(line.strip() in _NO_FLOWS for line in beginning.splitlines()[:4]):
        raise UnreadableFileError(path, "has no flows, as nfdump reports in it: check its filter and its times")
    if re.match(rb"Date first seen\s", beginning):
        raise UnreadableFileError(path, "is nfdump's human-readable format: `nfdump -o csv` writes what can be read")


def refuse_separator(path: Path, header: str) -> None:
    """Raise an error that names the separator of a table that has our columns, but not with commas."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if set(NEEDED) <= set(next(csv.reader([header], delimiter=separator))):
            raise UnreadableFileError(path, f"has {name} between its columns, and must have commas")
