"""Results of analyses: printed, or in files that are written atomically."""

import argparse
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from marline.errors import OptionError, OutputError
from marline.json import Json
from marline.pages import style_sheet
from marline.text import printable

Result = TypeVar("Result")

_SUFFIXES: Final = {".html", ".json", ".png", ".svg", ".txt"}
"""Of the files of a report."""


MISSING_DIRECTORIES: Final = "missing directories are made"
"""For the help of each output: those above it, too."""


@dataclass(frozen=True, slots=True)
class Forms(Generic[Result]):
    """The forms that the result of an analysis can have."""

    table: Callable[[Result], str]
    document: Callable[[Result], Json]
    files: Callable[[Result], Mapping[str, bytes]]
    """By name, ``report.html`` among them."""

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """Add the options that choose among them."""
        parser.add_argument(
            "-o",
            "--out",
            type=Path,
            metavar="DIR",
            help=f"where figures and the report are written; {MISSING_DIRECTORIES}",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")

    def put_out(self, analyse: Callable[[], Result], arguments: argparse.Namespace) -> None:
        """Analyse, then write and print the result as the options say.

        Whether the result can be written, and its pages can be built, is checked before the analysis begins.

        Raises :class:`OutputError`, :class:`IncompleteInstallationError` and the errors of the analysis.
        """
        if arguments.out is not None:
            require_directory(arguments.out)
            style_sheet()
        result = analyse()
        if arguments.out is not None:
            write_all(arguments.out, self.files(result))
        if arguments.json:
            json.dump(self.document(result), sys.stdout, indent=1)
            sys.stdout.write("\n")
        else:
            sys.stdout.write(printable(self.table(result)))
        if arguments.out is not None:
            sys.stderr.write(f"the report: {arguments.out / 'report.html'}\n")


class OutputFile:
    """A file that is written to a temporary name, and renamed when it is complete. A link is followed, and a

    replaced file keeps its mode.
    """

    def __init__(self, path: Path, *sources: Path) -> None:
        """Check that it can be written, and is not one of the ``sources``, which are read.

        Raises :class:`OutputError` and :class:`OptionError`.
        """
        if any(path.resolve() == source.resolve() for source in sources):
            raise OptionError(
                f"{path}: is the file that is read, and would be overwritten: choose another name with -o"
            )
        self._path = path
        self._place = Path(os.path.realpath(path))
        with _reported(path):
            mode = _mode(self._place)
            _require_replaceable(self._place, mode)
            _require_writable(self._place.parent)
        self._mode = mode

    @contextmanager
    def written(self) -> Iterator[Path]:
        """The path to write to, which becomes the file if the block ends without an error.

        Raises :class:`OutputError`, also for an :class:`OSError` of the block.
        """
        with _reported(self._path), _unfinished(self._place.parent) as directory:
            unfinished = directory / f"output{self._place.suffix}"
            yield unfinished
            if self._mode is not None:
                unfinished.chmod(stat.S_IMODE(self._mode))
            unfinished.replace(self._place)


def require_directory(directory: Path) -> None:
    """Raise :class:`OutputError` unless the files of a report can be written into a directory, or it can be made."""
    with _reported(directory):
        if _mode(directory) is not None:
            for one in directory.iterdir():
                if one.suffix in _SUFFIXES:
                    _require_replaceable(one, _mode(one))
        _require_writable(directory)


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files``, by name, into ``directory``, which is made if it is missing.

    All are written to temporary names first, and renamed when that has succeeded for each.

    Raises :class:`OutputError`.
    """
    with _reported(directory), _unfinished(directory) as unfinished:
        for name, content in files.items():
            (unfinished / name).write_bytes(content)
        for name in files:
            (unfinished / name).replace(directory / name)


@contextmanager
def _unfinished(directory: Path) -> Iterator[Path]:
    """A new directory in one that is made if it is missing; removed at the end with its content."""
    # Its name is known before it is created, so that a signal at any time leaves no files.
    unfinished = directory / f".unfinished-{secrets.token_hex(4)}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir(mode=0o700)
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Errors of the system as those of an output, with the path that the user gave."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from error


def _mode(path: Path) -> int | None:
    """The mode of the existing file, following links; None if there is none. Raises :class:`OSError`."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _require_replaceable(path: Path, mode: int | None) -> None:
    """Raise :class:`OutputError` for an object that a file cannot replace."""
    if mode is None:
        return
    if not stat.S_ISREG(mode):
        raise OutputError(path, "there is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
    if not os.access(path, os.W_OK):
        raise OutputError(path, "the existing file is not writable")


def _require_writable(directory: Path) -> None:
    """Make a file without a name in a directory, or in its nearest existing parent."""
    there = directory
    while not os.path.lexists(there) and there != there.parent:
        there = there.parent
    with tempfile.TemporaryFile(dir=there):
        pass
