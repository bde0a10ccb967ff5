"""Errors, which state the problem and its solution."""

from pathlib import Path


class MarlineError(Exception):
    """An error that the user can correct; its text explains how."""


class MissingFileError(MarlineError):
    """A file does not exist."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: there is no such file")


class UnreadableFileError(MarlineError):
    """A file does not have the format of its name."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class EmptyTableError(MarlineError):
    """A table has no rows that can be used."""

    def __init__(self, path: Path, what: str = "no rows") -> None:
        super().__init__(f"{path}: {what}; was the run that should write it interrupted?")


class MissingColumnsError(MarlineError):
    """A table lacks columns."""

    def __init__(self, path: Path, missing: list[str], hint: str) -> None:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        super().__init__(f"{path}: no column {', '.join(missing[:3])}{more}; {hint}")
        self.missing = missing


class NotANumberError(MarlineError):
    """A value that must be a number is not."""

    def __init__(self, path: Path, row: int, column: str, value: str) -> None:
        super().__init__(f"{path}: row {row}: {column} must be a finite number, and is {value!r}")


class OptionError(MarlineError):
    """The options make no sense for this table."""


class TooFewRowsError(MarlineError):
    """There are too few rows to learn from."""

    def __init__(self, what: str, rows: int, needed: int) -> None:
        super().__init__(f"{what}: {rows} rows, and at least {needed} are needed: run the experiment with more repeats")


class TooManyClassesError(MarlineError):
    """Throughputs are spread over more classes than a tree can show."""

    def __init__(self, classes: int, limit: int) -> None:
        super().__init__(
            f"the throughputs are of {classes} classes, and at most {limit} are possible: "
            "choose wider ones with --class-mbps"
        )


class OutputError(MarlineError):
    """Results cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: cannot be written: {reason}")
