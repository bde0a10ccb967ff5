"""Flows with labels, as a matrix of features."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import duckdb
import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.errors import MarlineError, MissingColumnsError, UnreadableFileError
from marline.flows.addresses import steps
from marline.flows.classify.taken import ELSEWHERE, INCOMPLETE, NO_FLOW, OTHER_TRANSPORT, conditions, value
from marline.flows.columns import COLUMNS, HTTPS_PORT, VERSIONS, first_unmet
from marline.flows.features import CANDIDATES, FEATURE_SETS, TRANSPORT, FlowFeature
from marline.flows.source import FlowFile
from marline.tables import reason, text_literal

FEWEST = 100
"""The fewest rows of a sample."""

SAME_START_US: Final = 5000
"""The most difference of the starts of one flow in two files: clocks, capture points and precision differ."""

UNLABELLED: Final = "has no label"

_LABELLED: Final = f"http_version IN {VERSIONS}"

_PLURALS: Final = {
    NO_FLOW: "are not flows",
    ELSEWHERE: f"are not to port {HTTPS_PORT}",
    OTHER_TRANSPORT: "are neither of TCP nor of UDP",
    UNLABELLED: "have no label",
    INCOMPLETE: "lack a number",
}
"""The reasons for excluding records from training, as words of a sentence, in the order of the checks."""


class OneClassError(MarlineError):
    """There is only one class."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that are excluded from training, each by the first reason that applies."""

    counts: dict[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {_PLURALS[name]}" for name, count in self.counts.items() if count)


class TooFewFlowsError(MarlineError):
    """There are too few flows to learn from, or to test with."""

    def __init__(self, path: Path, flows: int, needed: int, left_out: LeftOut) -> None:
        reasons = f"; of {flows + left_out.total:,} flows {left_out}" if left_out.total else ""
        super().__init__(
            f"{path}: {flows:,} flows with a label, and at least {needed} are needed: take a longer capture{reasons}"
        )


class SameFlowsError(MarlineError):
    """Flows would be used for both training and testing, or counted twice."""

    def __init__(self, path: Path, same: int, flows: int, other: Path) -> None:
        super().__init__(
            f"{path}: {same:,} of its {flows:,} flows are in {other}, too: a test on training data is not "
            "meaningful; remove them from one of the files"
        )


@dataclass(frozen=True, slots=True)
class Identities:
    """The keys that identify the same flow in another file."""

    ends: npt.NDArray[np.uint64]
    """A hash of the addresses and ports of each flow."""
    transport: Numbers
    """Of each flow, as a feature; NaN if a record does not contain it."""
    start_us: npt.NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """Those of several files."""
        return cls(
            np.concatenate([part.ends for part in parts]),
            np.concatenate([part.transport for part in parts]),
            np.concatenate([part.start_us for part in parts]),
        )

    def among(self, others: Self) -> int:
        """The number that are in others: with equal ends and transport, and starts within :data:`SAME_START_US`."""
        both = Identities.of([self, others])
        # If one file does not contain it, it is not compared.
        transport = np.zeros_like(both.transport) if np.isnan(both.transport).any() else both.transport
        order = np.lexsort((both.start_us, transport, both.ends))
        ends, transport, start_us = both.ends[order], transport[order], both.start_us[order]
        asked = order < len(self.ends)
        places = np.arange(len(order))
        # The nearest of the others on either side.
        before = np.maximum.accumulate(np.where(asked, -1, places))
        after = np.minimum.accumulate(np.where(asked, len(order), places)[::-1])[::-1]
        found = np.zeros(len(order), dtype=bool)
        for at, there in ((before, before >= 0), (after, after < len(order))):
            near = np.where(there, at, 0)
            alike = (ends[near] == ends) & (transport[near] == transport)
            found |= there & alike & (np.abs(start_us[near] - start_us) <= SAME_START_US)
        return int((found & asked).sum())


@dataclass(frozen=True, slots=True)
class Sample:
    """Labelled flows of one file, or of several."""

    used: tuple[FlowFeature, ...]
    """The features of models."""
    names: tuple[str, ...]
    """Of the classes that occur, in the order of :data:`VERSIONS`."""
    rows: Numbers
    """A row for each flow, a column for each of :data:`CANDIDATES`."""
    transport: Numbers
    """Of each flow, as a feature; NaN where a record does not say."""
    classes: Classes
    """Of each row, an index in the names."""
    services: npt.NDArray[np.object_]
    """The name that the client requested, or NULL."""
    clients: npt.NDArray[np.uint64]
    """A hash of the address of each client."""
    identities: Identities
    sources: Classes
    """Of each row, the index of its file among those that were read."""
    left_out: LeftOut

    @classmethod
    def load(cls, *paths: Path, features: str | None = None, fewest: int = FEWEST) -> Self:
        """Read the labelled flows of files, which must differ from file to file.

        ``features`` names one of :data:`FEATURE_SETS`; without, models use the transport if all files have it. If
        ``fewest`` is 1, the flows are to test with: they may be of one class.

        Raises :class:`TooFewFlowsError`, :class:`OneClassError`, :class:`SameFlowsError` and what
        :meth:`FlowFile.open` does.
        """
        files = [FlowFile.open(path) for path in paths]
        if features is None:
            features = "transport" if all("transport" in file.has for file in files) else "published"
        used = FEATURE_SETS[features]
        parts = [_Part.read(file, used) for file in files]
        for at, part in enumerate(parts):
            for other in parts[:at]:
                require_others(part.path, part.identities, other.path, other.identities)
        left_out = LeftOut(
            {name: sum(part.left_out.counts[name] for part in parts) for name in parts[0].left_out.counts}
        )
        versions = np.concatenate([part.versions for part in parts])
        if len(versions) < fewest:
            raise TooFewFlowsError(paths[0], len(versions), fewest, left_out)
        names = tuple(name for name in VERSIONS if (versions == name).any())
        if len(names) < 2 and fewest > 1:
            raise OneClassError(f"{paths[0]}: all {len(versions):,} labelled flows are of {names[0]}; two are needed")
        places = {name: at for at, name in enumerate(names)}
        return cls(
            used,
            names,
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.transport for part in parts]),
            np.array([places[version] for version in versions], dtype=np.int64),
            np.concatenate([part.services for part in parts]),
            np.concatenate([part.clients for part in parts]),
            Identities.of([part.identities for part in parts]),
            np.repeat(np.arange(len(parts)), [len(part.versions) for part in parts]),
            left_out,
        )

    def of(self, features: tuple[FlowFeature, ...] | None = None) -> Numbers:
        """The columns of some features; of those that models use, if none are named."""
        columns = {feature.column: self.rows[:, at] for at, feature in enumerate(CANDIDATES)}
        columns[TRANSPORT.column] = self.transport
        return np.column_stack([columns[feature.column] for feature in features or self.used])


@dataclass(frozen=True, slots=True)
class _Part:
    """The labelled flows of one file."""

    path: Path
    rows: Numbers
    transport: Numbers
    versions: npt.NDArray[np.str_]
    services: npt.NDArray[np.object_]
    clients: npt.NDArray[np.uint64]
    identities: Identities
    left_out: LeftOut

    @classmethod
    def read(cls, flows: FlowFile, used: tuple[FlowFeature, ...]) -> Self:
        needed = tuple(dict.fromkeys((*CANDIDATES, *used)))
        _require_columns(flows, needed)
        read = (*CANDIDATES, TRANSPORT)
        values = ", ".join(f"{value(feature)} AS {feature.column}_value" for feature in read)
        ends = f"hash({_host('client')}, client_port, {_host('server')}, server_port)"
        asked = conditions(needed)
        asked = {**asked, UNLABELLED: _LABELLED, INCOMPLETE: asked[INCOMPLETE]}
        asked = {name: asked[name] for name in _PLURALS}
        try:
            records = flows.relation.project(f"*, {first_unmet(asked)} AS why")
            for name, expression in [*steps("client_ip", _number("client")), *steps("server_ip", _number("server"))]:
                records = records.project(f"*, {expression} AS {name}")
            columns = (
                records.filter("why IS NULL")
                # An order of their own, so that folds and results do not depend on the engine.
                .order("start_s, client_ip, client_port, server_ip, end_s")
                .project(f"{values}, http_version, sni, hash(client_ip) AS client, {ends} AS ends, start_s")
                .fetchnumpy()
            )
            counts = dict(records.filter("why IS NOT NULL").aggregate("why, count(*)", "why").fetchall())
        except duckdb.Error as error:
            raise UnreadableFileError(flows.path, reason(error)) from error
        numbers = [
            np.ma.filled(np.ma.asarray(columns[f"{feature.column}_value"], dtype=np.float64), np.nan)
            for feature in read
        ]
        return cls(
            flows.path,
            np.column_stack(numbers[:-1]),
            numbers[-1],
            np.asarray(columns["http_version"]).astype(str),
            np.ma.filled(np.ma.asarray(columns["sni"], dtype=object), ""),
            np.asarray(columns["client"], dtype=np.uint64),
            Identities(
                np.asarray(columns["ends"], dtype=np.uint64),
                numbers[-1],
                np.rint(np.asarray(columns["start_s"], dtype=np.float64) * 1e6).astype(np.int64),
            ),
            LeftOut({name: counts.get(name, 0) for name in _PLURALS}),
        )


def require_others(path: Path, flows: Identities, other: Path, learnt: Identities) -> None:
    """Raise :class:`SameFlowsError` if any of the ``flows`` of a file is among those ``learnt`` from."""
    same = flows.among(learnt)
    if same:
        raise SameFlowsError(path, same, len(flows.ends), other)


def _number(end: str) -> str:
    return f"{end}_number"


def _host(end: str) -> str:
    """An address in canonical form, in SQL; other text, such as an anonymized address, unchanged."""
    address = f"lower(trim({end}_ip))"
    form = text_literal(r"\d+(\.\d+){3}|[0-9a-f]*:[0-9a-f:]*:[0-9a-f.]*(%.*)?")
    return f"CASE WHEN regexp_full_match({address}, {form}) THEN {_number(end)} ELSE {address} END"


def _require_columns(flows: FlowFile, features: tuple[FlowFeature, ...]) -> None:
    needed = [name for name in COLUMNS if any(re.search(rf"\b{name}\b", feature.sql) for feature in features)]
    missing = [name for name in [*needed, "http_version"] if name not in flows.has]
    if missing:
        raise MissingColumnsError(
            flows.path,
            missing,
            "classify learns from what `marline flow` writes, Tstat's log_tcp_complete and Zeek's logs",
        )
