"""Outputs of commands, and all that is needed to write them, are checked before the work begins."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching

from flows import write_flows, write_labelled
from marline.arrays import Numbers
from marline.cli import main
from marline.compiled import compiled
from marline.errors import OptionError, OutputError
from marline.output import OutputFile, require_directory, write_all
from marline.pages import style_sheet

REPORTS = (
    ["sessions", "absent"],
    ["characterise", "absent"],
    ["determinants", "absent"],
    ["classify", "evaluate", "absent"],
)
FILES = (["classify", "train", "absent"], ["classify", "predict", "absent", "absent"])


def refused(arguments: list[str], out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The message about an output. Its inputs do not exist, which would be reported if they were opened."""
    assert main([*arguments, "-o", str(out)]) == 1
    told = capsys.readouterr().err
    assert "absent" not in told
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_a_directory_that_cannot_be_written_is_named_before_the_work(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, full = tmp_path / "file", tmp_path / "full"
    file.touch()
    (full / "report.html").mkdir(parents=True)
    for out, told in (
        (file, f"error: {file}: cannot be written: Not a directory\n"),
        (file / "below" / "it", f"error: {file / 'below' / 'it'}: cannot be written: Not a directory\n"),
        (full, f"error: {full / 'report.html'}: cannot be written: there is a directory\n"),
        (tmp_path / ("n" * 300), f"error: {tmp_path / ('n' * 300)}: cannot be written: File name too long\n"),
    ):
        assert refused(arguments, out, capsys) == told
    assert "/proc/nothing: cannot be written: " in refused(arguments, Path("/proc/nothing"), capsys)
    assert {one.name for one in tmp_path.iterdir()} == {"file", "full"}


@pytest.mark.parametrize("arguments", FILES, ids=" ".join)
def test_a_file_that_cannot_be_written_is_named_before_the_work(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, directory = tmp_path / "file", tmp_path / "directory.parquet"
    file.touch()
    directory.mkdir()
    pipe = tmp_path / "pipe.parquet"
    os.mkfifo(pipe)
    for out, told in (
        (file / "it.parquet", "Not a directory"),
        (directory, "there is a directory"),
        (pipe, "it is not a regular file"),
        (tmp_path / f"{'n' * 300}.parquet", "File name too long"),
    ):
        assert refused(arguments, out, capsys) == f"error: {out}: cannot be written: {told}\n"
    assert "/proc/it.parquet: cannot be written: " in refused(arguments, Path("/proc/it.parquet"), capsys)
    assert {one.name for one in tmp_path.iterdir()} == {"file", "directory.parquet", "pipe.parquet"}


@pytest.mark.parametrize("arguments", REPORTS + FILES, ids=" ".join)
def test_each_command_says_that_it_makes_directories(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = arguments[: arguments.index("absent")]
    with pytest.raises(SystemExit):
        main([*verbs, "--help"])
    assert "missing directories are made" in " ".join(capsys.readouterr().out.split())


def test_directories_of_an_output_are_made(tmp_path: Path) -> None:
    report, file = tmp_path / "a" / "report", tmp_path / "b" / "c" / "file.npz"
    require_directory(report)
    write_all(report, {"report.html": b"x"})
    with OutputFile(file).written() as unfinished:
        unfinished.write_bytes(b"y")
    assert (report / "report.html").read_bytes() == b"x"
    assert file.read_bytes() == b"y"


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: root may write everywhere")
def test_what_may_not_be_written_is_named(tmp_path: Path) -> None:
    closed, kept = tmp_path / "closed", tmp_path / "kept"
    closed.mkdir(mode=0o500)
    kept.touch(mode=0o400)
    with pytest.raises(OutputError, match="closed/it: cannot be written: Permission denied"):
        OutputFile(closed / "it")
    with pytest.raises(OutputError, match="kept: cannot be written: the existing file is not writable"):
        OutputFile(kept)


@pytest.fixture
def without_style(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("marline.pages.sheet.files", lambda _: tmp_path)
    style_sheet.cache_clear()
    yield
    style_sheet.cache_clear()


@pytest.mark.usefixtures("without_style")
@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_a_package_without_its_style_sheet_says_so_before_the_work(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(arguments, tmp_path / "out", capsys)
    reason = "No such file or directory: marline is not installed whole; install it again"
    assert told == f"error: {tmp_path / 'style.css'}: {reason}\n"


@pytest.mark.parametrize("arguments", [["train", "absent"], ["predict", "absent", "absent"]])
def test_what_is_read_is_not_overwritten(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_labelled(tmp_path / "flows.parquet", 200)
    content = path.read_bytes()
    arguments = ["classify", *(str(path) if name == "absent" else name for name in arguments)]
    assert "would be overwritten" in refused(arguments, path, capsys)
    assert path.read_bytes() == content


def test_a_link_is_followed_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "there" / "file", tmp_path / "link"
    file.parent.mkdir()
    file.touch(mode=0o600)
    link.symlink_to(file)
    with OutputFile(link).written() as path:
        path.write_bytes(b"new")
    assert (link.is_symlink(), file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (True, b"new", 0o600)
    with pytest.raises(OptionError, match="would be overwritten"):
        OutputFile(link, file)
    with pytest.raises(OutputError, match="cannot be written: "), OutputFile(file).written() as path:
        path.joinpath("..").write_bytes(b"")
    assert [one.name for one in file.parent.iterdir()] == ["file"]
    assert file.read_bytes() == b"new"


def test_without_a_place_for_what_is_compiled_each_process_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def locator(*_: object) -> None:
        return None

    for one in caching.CacheImpl._locator_classes:
        monkeypatch.setattr(one, "from_function", locator)

    @compiled()
    def twice(numbers: Numbers) -> Numbers:
        return numbers * 2

    assert twice(np.ones(2)).tolist() == [2.0, 2.0]


def command(*arguments: str, redirect: str = "", cwd: Path) -> "subprocess.CompletedProcess[str]":
    shell = f'exec "$0" -m marline "$@" {redirect}'
    return subprocess.run(
        ["sh", "-c", shell, sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_closed_output_is_told_before_the_work(tmp_path: Path) -> None:
    done = command("sessions", "absent", redirect=">&-", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: standard output is closed, and the result is printed there\n")


def test_a_closed_error_output_stops_nothing(tmp_path: Path) -> None:
    write_flows(tmp_path / "flows.parquet", 1000)
    done = command("sessions", "flows.parquet", "-o", "out", redirect="2>&-", cwd=tmp_path)
    assert done.returncode == 0
    assert "isolated" in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()
