"""Flows with labels, as a matrix of features."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError, TooFewRowsError, UnreadableFileError
from marline.flows.columns import HTTPS_PORT, NEEDED, VERSIONS
from marline.flows.features import CANDIDATES, SELECTED, FlowFeature
from marline.flows.source import FlowFile
from marline.tables import reason

FEWEST = 100
"""Rows that a sample has at least."""


class OneClassError(MarlineError):
    """There is nothing to tell apart."""


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
    left_out: int
    """Records without a label, of another port, or without a value."""

    @classmethod
    def load(cls, path: Path, features: tuple[FlowFeature, ...] = CANDIDATES, fewest: int = FEWEST) -> Self:
        """Read the labelled flows of a file; if ``fewest`` is 1, to test with: they may be of one class.

        Raises :class:`TooFewRowsError`, :class:`OneClassError` and what :meth:`FlowFile.open` does.
        """
        flows = FlowFile.open(path)
        labelled = f"http_version IN {VERSIONS} AND server_port = {HTTPS_PORT}"
        values = ", ".join(f"{value(feature)} AS {feature.column}" for feature in features)
        present = " AND ".join(f"isfinite({feature.column})" for feature in features)
        complete = " AND ".join(f"{name} IS NOT NULL" for name in NEEDED)
        try:
            columns = (
                flows.relation.filter(f"{labelled} AND {complete} AND end_s >= start_s")
                # An order of their own, so that folds and results do not depend on the engine.
                .order("start_s, client_ip, client_port, server_ip, end_s")
                .project(f"{values}, http_version, sni")
                .filter(present)
                .fetchnumpy()
            )
            records = sum(flows.versions().values())
        except duckdb.Error as error:
            raise UnreadableFileError(path, reason(error)) from error
        rows = np.column_stack([np.asarray(columns[feature.column], dtype=np.float64) for feature in features])
        versions = np.asarray(columns["http_version"]).astype(str)
        if len(rows) < fewest:
            raise TooFewRowsError(f"{path}: flows with a label", len(rows), fewest)
        names = tuple(name for name in VERSIONS if (versions == name).any())
        if len(names) < 2 and fewest > 1:
            raise OneClassError(f"{path}: all {len(rows):,} labelled flows are of {names[0]}; two are needed")
        classes = np.searchsorted(np.array(sorted(names)), versions)
        order = [sorted(names).index(name) for name in names]
        asked: npt.NDArray[np.object_] = np.ma.filled(np.ma.asarray(columns["sni"], dtype=object), "")
        return cls(features, names, rows, np.argsort(order)[classes], asked, records - len(rows))

    def of(self, features: tuple[FlowFeature, ...] = SELECTED) -> Numbers:
        """The columns of some of the features."""
        places = {feature.column: at for at, feature in enumerate(self.features)}
        return np.ascontiguousarray(self.rows[:, [places[feature.column] for feature in features]])


def value(feature: FlowFeature) -> str:
    """A feature as a number in SQL."""
    return f"CAST({feature.sql} AS DOUBLE)"
