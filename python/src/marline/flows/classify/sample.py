"""Flows with labels, as a matrix of features."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError, MissingColumnsError, UnreadableFileError
from marline.flows.columns import COLUMNS, HTTPS_PORT, VERSIONS, possible
from marline.flows.features import CANDIDATES, SELECTED, FlowFeature
from marline.flows.source import FlowFile
from marline.tables import reason

FEWEST = 100
"""Rows that a sample has at least."""


class OneClassError(MarlineError):
    """There is nothing to tell apart."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that nothing can be learnt from; each is counted once, by what is first."""

    impossible: int
    """With values that cannot be, or without a time or an address."""
    elsewhere: int
    """Of another port."""
    unlabelled: int
    incomplete: int
    """Without a value of a feature."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.impossible + self.elsewhere + self.unlabelled + self.incomplete

    def __str__(self) -> str:
        reasons = {
            "are no flows": self.impossible,
            f"are not to port {HTTPS_PORT}": self.elsewhere,
            "have no label": self.unlabelled,
            "lack a number": self.incomplete,
        }
        return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)


class TooFewFlowsError(MarlineError):
    """There is too little to learn from, or to test with."""

    def __init__(self, path: Path, flows: int, needed: int, left_out: LeftOut) -> None:
        reasons = f"; of {flows + left_out.total:,} flows {left_out}" if left_out.total else ""
        super().__init__(
            f"{path}: {flows:,} flows with a label, and at least {needed} are needed: take a longer capture{reasons}"
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Labelled flows of one file."""

    features: tuple[FlowFeature, ...]
    names: tuple[str, ...]
    """Of the classes that occur, in the order of :data:`VERSIONS`."""
    rows: Numbers
    """A row for each flow, a column for each feature."""
    classes: Classes
    """Of each row, a place among the names."""
    services: npt.NDArray[np.object_]
    """The name that the client asked for, or nothing."""
    left_out: LeftOut

    @classmethod
    def load(cls, path: Path, features: tuple[FlowFeature, ...] = CANDIDATES, fewest: int = FEWEST) -> Self:
        """Read the labelled flows of a file; if ``fewest`` is 1, to test with: they may be of one class.

        Raises :class:`TooFewFlowsError`, :class:`OneClassError` and what :meth:`FlowFile.open` does.
        """
        flows = FlowFile.open(path)
        _require_columns(flows, features)
        labelled = f"http_version IN {VERSIONS} AND server_port = {HTTPS_PORT}"
        values = ", ".join(f"{value(feature)} AS {feature.column}" for feature in features)
        present = " AND ".join(f"isfinite({feature.column})" for feature in features)
        try:
            columns = (
                flows.flows.filter(labelled)
                # An order of their own, so that folds and results do not depend on the engine.
                .order("start_s, client_ip, client_port, server_ip, end_s")
                .project(f"{values}, http_version, sni")
                .filter(present)
                .fetchnumpy()
            )
            left_out = _left_out(flows, len(columns["sni"]))
        except duckdb.Error as error:
            raise UnreadableFileError(path, reason(error)) from error
        rows = np.column_stack([np.asarray(columns[feature.column], dtype=np.float64) for feature in features])
        versions = np.asarray(columns["http_version"]).astype(str)
        if len(rows) < fewest:
            raise TooFewFlowsError(path, len(rows), fewest, left_out)
        names = tuple(name for name in VERSIONS if (versions == name).any())
        if len(names) < 2 and fewest > 1:
            raise OneClassError(f"{path}: all {len(rows):,} labelled flows are of {names[0]}; two are needed")
        classes = np.searchsorted(np.array(sorted(names)), versions)
        order = [sorted(names).index(name) for name in names]
        asked: npt.NDArray[np.object_] = np.ma.filled(np.ma.asarray(columns["sni"], dtype=object), "")
        return cls(features, names, rows, np.argsort(order)[classes], asked, left_out)

    def of(self, features: tuple[FlowFeature, ...] = SELECTED) -> Numbers:
        """The columns of some of the features."""
        places = {feature.column: at for at, feature in enumerate(self.features)}
        return np.ascontiguousarray(self.rows[:, [places[feature.column] for feature in features]])


def _require_columns(flows: FlowFile, features: tuple[FlowFeature, ...]) -> None:
    needed = [name for name in COLUMNS if any(re.search(rf"\b{name}\b", feature.sql) for feature in features)]
    missing = [name for name in [*needed, "http_version"] if name not in flows.has]
    if missing:
        raise MissingColumnsError(
            flows.path,
            missing,
            "classify learns from what `marline flow` writes, Tstat's log_tcp_complete and Zeek's logs",
        )


def _left_out(flows: FlowFile, used: int) -> LeftOut:
    conditions = [possible(COLUMNS), f"server_port = {HTTPS_PORT}", f"http_version IN {VERSIONS}"]
    passed = [f"count(*) FILTER ({' AND '.join(conditions[:at])})" for at in range(1, len(conditions) + 1)]
    records, real, https, labelled = flows.relation.aggregate(f"count(*), {', '.join(passed)}").fetchall()[0]
    return LeftOut(records - real, real - https, https - labelled, labelled - used)


def value(feature: FlowFeature) -> str:
    """A feature as a number in SQL."""
    return f"CAST({feature.sql} AS DOUBLE)"
