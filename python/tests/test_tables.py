"""Reading tables, and the errors of unreadable ones."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from marline.errors import (
    EmptyTableError,
    MarlineError,
    MissingColumnsError,
    MissingFileError,
    NotANumberError,
    UnreadableFileError,
)
from marline.tables import Table

ROWS = "name,a,b\nx,1,2.5\ny,-3,1e3\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_each_kind_of_file_is_read_by_its_header(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        values = "select * from (values ('x', 1, 2.5), ('y', -3, 1e3)) t(name, a, b)"
        duckdb.execute(f"copy ({values}) to '{path}'")
    elif suffix == ".json":
        written(path, '[{"name": "x", "a": 1, "b": 2.5}, {"name": "y", "a": -3, "b": 1e3}]')
    elif suffix == ".jsonl":
        written(path, '{"name": "x", "a": 1, "b": 2.5}\n{"name": "y", "a": -3, "b": 1e3}\n')
    else:
        written(path, ROWS.replace(",", "\t") if suffix == ".tsv" else ROWS)
    table = Table.open(path)
    assert table.header == ["name", "a", "b"]
    rows = table.load(["b", "name", "a"], "hint")
    assert rows.texts("name") == ["x", "y"]
    assert rows.numbers(["a", "b"], [True, True]).tolist() == [[1.0, 2.5], [-3.0, 1000.0]]
    assert rows.numbers(["b"], [False, True]).tolist() == [[1000.0]]


def test_missing_values_are_nan(tmp_path: Path) -> None:
    rows = Table.open(written(tmp_path / "t.csv", "a,b\n1,\n,2\n")).load(["a", "b"], "hint")
    assert np.isnan(rows.numbers(["a", "b"], [True, True])).tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize("value", ["fast", "nan", "inf", "1e999", "0x10"])
def test_what_is_no_finite_number_is_named_with_its_row(tmp_path: Path, value: str) -> None:
    rows = Table.open(written(tmp_path / "t.csv", f"a\n1\n{value}\n")).load(["a"], "hint")
    with pytest.raises(NotANumberError, match=f"row 2: a must be a finite number, and is '{value}'"):
        rows.numbers(["a"], [True, True])


def test_missing_columns_are_named_with_a_hint(tmp_path: Path) -> None:
    table = Table.open(written(tmp_path / "t.csv", ROWS))
    with pytest.raises(MissingColumnsError, match="no column c, d; take another"):
        table.load(["a", "c", "d"], "take another")
    with pytest.raises(MissingColumnsError, match="no column c, d, e and 2 more; take another"):
        table.load(["c", "d", "e", "f", "g"], "take another")


def test_a_name_with_quotes_is_a_name(tmp_path: Path) -> None:
    table = Table.open(written(tmp_path / "t.csv", '"a ""b"".c"\n7\n'))
    assert table.load(['a "b".c'], "hint").texts('a "b".c') == ["7"]


@pytest.mark.parametrize("name", ["a*.csv", "a[1].csv", "a?.csv", "it's.csv"])
def test_a_name_is_no_pattern(tmp_path: Path, name: str) -> None:
    written(tmp_path / "a1.csv", "other\n1\n")
    assert Table.open(written(tmp_path / name, ROWS)).header == ["name", "a", "b"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet"])
def test_the_names_of_directories_are_no_columns(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "a=9").mkdir()
    path = tmp_path / "a=9" / f"t{suffix}"
    if suffix == ".parquet":
        duckdb.execute(f"copy (select 1 as a) to '{path}'")
    else:
        written(path, '{"a": 1}\n' if "json" in suffix else "a\n1\n")
    assert Table.open(path).load(["a"], "hint").texts("a") == ["1"]


def test_decimal_values_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.execute(f"copy (select 2.5::decimal(4, 1) as a) to '{path}'")
    assert Table.open(path).load(["a"], "hint").numbers(["a"], [True]).tolist() == [[2.5]]


@pytest.mark.parametrize(
    ("name", "content", "error", "text"),
    [
        ("t.csv", "", EmptyTableError, "is empty"),
        ("t.csv", "a,b\n", EmptyTableError, "no rows"),
        ("t.xlsx", "a", UnreadableFileError, "its suffix must be one of .csv"),
        ("t.json", "[{", UnreadableFileError, "t.json: "),
        ("t.parquet", "no parquet", UnreadableFileError, "t.parquet: "),
        ("t.csv", "a,b\n1,2\n3\n", UnreadableFileError, "Line: 3; Expected Number of Columns: 2 Found: 1"),
        ("t.csv", "a,b\n1,2,3\n", UnreadableFileError, "Line: 2; Expected Number of Columns: 2 Found: 3"),
        ("t.csv", 'a,b\n1,"2\n', UnreadableFileError, "Line: 2"),
        ("t.csv", "a,b,a\n1,2,3\n", UnreadableFileError, "there are several columns a"),
        ("t.csv", "\udcff\n1\n", UnreadableFileError, "not a header of columns in UTF-8"),
    ],
)
def test_files_that_are_no_tables_are_errors(
    tmp_path: Path, name: str, content: str, error: type[MarlineError], text: str
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(error) as raised:
        Table.open(path).load(["a"], "hint")
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_and_a_directory_are_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no such file"):
        Table.open(tmp_path / "none.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(UnreadableFileError, match="is not a file"):
        Table.open(tmp_path / "d.csv")


def test_a_table_beyond_what_memory_should_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "1\n" * 101)
    assert len(Table.open(path).load(["a"], "").texts("a")) == 101
    monkeypatch.setattr("marline.tables.MAX_TABLE_ROWS", 100)
    with pytest.raises(UnreadableFileError, match="has more than 100 rows"):
        Table.open(path).load(["a"], "")
