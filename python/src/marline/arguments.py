"""Values of options that several verbs have."""

import argparse


def folds(text: str) -> int:
    """Parts of a cross-validation."""
    value = number(text)
    if not 2 <= value <= 100 or value != int(value):
        raise argparse.ArgumentTypeError(f"must be a whole number from 2 to 100, and is {text}")
    return int(value)


def seed(text: str) -> int:
    """What decides what is drawn at random."""
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
