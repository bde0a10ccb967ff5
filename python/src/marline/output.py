"""Results of analyses: printed, or in files that are whole or not there."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from marline.errors import OutputError
from marline.json import Json

Result = TypeVar("Result")


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
        parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="where figures and the report are written")
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")

    def put_out(self, result: Result, arguments: argparse.Namespace) -> None:
        """Write and print a result as the options say. Raises :class:`OutputError`."""
        if arguments.out is not None:
            write_all(arguments.out, self.files(result))
        if arguments.json:
            json.dump(self.document(result), sys.stdout, indent=1)
            sys.stdout.write("\n")
        else:
            sys.stdout.write(self.table(result))
        if arguments.out is not None:
            sys.stderr.write(f"the report: {arguments.out / 'report.html'}\n")


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files``, by name, into ``directory``, which is made if it is missing.

    All are written beside their places first, and renamed when that has succeeded for each.

    Raises :class:`OutputError`.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".unfinished-") as unfinished:
            for name, content in files.items():
                (Path(unfinished) / name).write_bytes(content)
            for name in files:
                (Path(unfinished) / name).replace(directory / name)
    except OSError as error:
        raise OutputError(directory, error.strerror or str(error)) from error
