"""Values of options that several verbs have."""

import argparse
from pathlib import Path
from typing import NoReturn

from marline.text import printable


class _Parser(argparse.ArgumentParser):
    """A command line whose errors are one line, as those of ``marline`` are."""

    def error(self, message: str) -> NoReturn:
        """End with the status of a wrong command line."""
        self.exit(2, f"error: {printable(' '.join(message.splitlines()))}\n")


def command_line(program: str, description: str) -> argparse.ArgumentParser:
    """A parser whose errors, and those of its verbs, are one line."""
    return _Parser(prog=program, description=description)


def parquet(text: str) -> Path:
    """A file of Parquet that is written."""
    if not text.endswith(".parquet"):
        raise argparse.ArgumentTypeError(f"{text}: the suffix must be .parquet")
    return Path(text)


def folds(text: str) -> int:
    """Parts of a cross-validation."""
    value = number(text)
    if not 2 <= value <= 100 or value != int(value):
        raise argparse.ArgumentTypeError(f"must be a whole number from 2 to 100, and is {text}")
    return int(value)


def seed(text: str) -> int:
    """The seed of everything drawn at random."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, and is {text}")
    return int(text)


def share(text: str) -> float:
    """A share or a probability."""
    value = number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, and is {text}")
    return value


def number(text: str) -> float:
    """Any number."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, and is {text}") from error
