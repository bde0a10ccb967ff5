"""The rows of a table of transfers that trees are learnt from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from marline.arrays import Numbers
from marline.determinants.options import Options
from marline.determinants.throughputs import Throughputs
from marline.errors import EmptyTableError, MissingColumnsError, OptionError, TooFewRowsError
from marline.limits import MAX_GROUPS
from marline.tables import Rows, Table
from marline.transfers.features import FEATURES, GOODPUT, Feature

HINT = "the table must be runs.csv of `marline lab run wifi/determinants`, or have its columns"

FEWEST_ROWS = 20
"""Rows of a tree: with fewer, a fold has less than two."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of one protocol, or of all."""

    name: str | None
    """The protocol; None for all."""
    features: tuple[Feature, ...]
    """Of the columns of the matrix."""
    matrix: Numbers
    mbps: Numbers
    """The throughput of each row."""
    throughputs: Throughputs
    groups: list[str] | None
    """The group of each row."""


@dataclass(frozen=True, slots=True)
class Data:
    """All rows that can be used."""

    path: Path
    features: tuple[Feature, ...]
    matrix: Numbers
    mbps: Numbers
    throughputs: Throughputs
    subjects: list[str]
    """The protocol of each row."""
    groups: list[str] | None
    skipped: int
    """Rows of runs that failed, or that lack a value."""

    @property
    def rows(self) -> int:
        """Their number."""
        return len(self.matrix)

    def samples(self) -> list[Sample]:
        """All rows, and those of each protocol if there are several.

        Raises :class:`OptionError` and :class:`TooFewRowsError`.
        """
        names = list(dict.fromkeys(self.subjects))
        if len(names) > MAX_GROUPS:
            raise OptionError(
                f"--by has {len(names)} values, and at most {MAX_GROUPS} are possible: choose another column"
            )
        samples = [self._of(name) for name in ([None] if len(names) == 1 else [None, *names])]
        for sample in samples:
            if len(sample.matrix) < FEWEST_ROWS:
                raise TooFewRowsError(sample.name or str(self.path), len(sample.matrix), FEWEST_ROWS)
        return samples

    def _of(self, name: str | None) -> Sample:
        used = np.array([name in (None, subject) for subject in self.subjects])
        groups = None if self.groups is None else _chosen(self.groups, used)
        throughputs = self.throughputs.of_rows(used)
        return Sample(name, self.features, self.matrix[used], self.mbps[used], throughputs, groups)


def load(path: Path, options: Options) -> Data:
    """Read a table of transfers.

    Raises :class:`marline.MarlineError`: the table cannot be used, or is inconsistent with the options.
    """
    features = _features(options)
    table = Table.open(path)
    if options.group is not None and options.group not in table.header:
        raise MissingColumnsError(path, [options.group], f"its columns are {', '.join(table.header)}")
    texts = [name for name in ("status", options.by, options.group) if name in table.header]
    numbers = [GOODPUT, *(feature.column for feature in features)]
    rows = table.load(list(dict.fromkeys([*texts, *numbers])), HINT)
    finished = _finished(rows, len(rows.texts(GOODPUT)), has_status="status" in texts)
    matrix = rows.numbers(numbers, finished.tolist())
    whole = np.array([not np.isnan(row).any() for row in matrix], dtype=np.bool_)
    if not whole.any():
        raise EmptyTableError(path, "no row of a finished run has all features")
    used = np.zeros(len(finished), dtype=np.bool_)
    used[np.flatnonzero(finished)[whole]] = True
    matrix = matrix[whole]
    return Data(
        path=path,
        features=features,
        matrix=matrix[:, 1:],
        mbps=matrix[:, 0],
        throughputs=Throughputs.of(matrix[:, 0], options.class_mbps),
        subjects=[name or "unnamed" for name in _chosen(rows.texts(options.by), used)]
        if options.by in texts
        else [""] * len(matrix),
        groups=_chosen(rows.texts(options.group), used) if options.group else None,
        skipped=len(used) - len(matrix),
    )


def _features(options: Options) -> tuple[Feature, ...]:
    columns = [feature.column for feature in FEATURES]
    unknown = [name for name in options.without if name not in columns]
    if unknown:
        raise OptionError(f"{', '.join(unknown)} is not a feature: the features are {', '.join(columns)}")
    features = tuple(feature for feature in FEATURES if feature.column not in options.without)
    if not features:
        raise OptionError("every feature is excluded: keep at least one")
    return features


def _finished(rows: Rows, count: int, *, has_status: bool) -> npt.NDArray[np.bool_]:
    """Whether each run was completed: all, if the table has no such column."""
    if not has_status:
        return np.ones(count, dtype=np.bool_)
    return np.array([status in ("ok", "") for status in rows.texts("status")], dtype=np.bool_)


def _chosen(texts: Sequence[str], which: npt.NDArray[np.bool_]) -> list[str]:
    return [text for text, use in zip(texts, which.tolist(), strict=True) if use]
