"""Sessions of flows, and the overlap of their flows (thesis of J. Manzoor, 2019, sections 4.2.2 and 4.3)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from marline.compiled import compiled
from marline.errors import MarlineError

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]

NONE = -1
"""The place of a flow that does not exist."""


class UnsortedFlowsError(MarlineError):
    """An engine returned flows that are not in the requested order."""

    def __init__(self, row: int) -> None:
        super().__init__(
            f"flow {row} is before the flow ahead of it: the engine did not sort; nothing of the result can be used"
        )


@dataclass(frozen=True, slots=True)
class Flows:
    """Columns of flows, each with one row a flow, sorted by key, second key and start."""

    key: Whole
    """A hash of client, server and name."""
    second_key: Whole
    """A hash of the same that is independent of the first: flows of one peer have both in common."""
    start_us: Whole
    end_us: Whole
    client_port: Whole
    size: Whole
    """Bytes in both directions."""

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def of(cls, batch: object) -> Self:
        """The columns of a batch of Arrow by their names."""
        return cls(*(np.asarray(batch[field.name], dtype=np.int64) for field in fields(cls)))  # type: ignore[index]

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """The rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))

    def rows(self, first: int, end: int) -> Self:
        """A range of rows."""
        return type(self)(*(getattr(self, field.name)[first:end] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Sessions:
    """Columns of sessions, each with one row a session, in the order of their flows."""

    flows: Whole
    parallel: npt.NDArray[np.bool_]
    """Whether there are two client ports or more; isolated otherwise."""
    longest: Whole
    """The place of its longest flow among its flows."""
    overlapping: Whole
    """The place of the other flow that overlaps the longest for most time, or :data:`NONE`."""
    longest_us: Whole
    overlap_us: Whole
    size: Whole
    """Bytes of all flows."""
    largest: Whole
    """Bytes of the largest flow."""

    def __len__(self) -> int:
        return len(self.flows)

    @property
    def time_overlap_percent(self) -> Real:
        """p: the share of the longest flow that the other overlaps; 0 for one without duration, NaN for one alone."""
        p = np.zeros(len(self))
        np.divide(100.0 * self.overlap_us, self.longest_us, out=p, where=self.longest_us > 0)
        return np.where(self.overlapping == NONE, np.nan, p)

    @property
    def data_overlap_percent(self) -> Real:
        """r: the bytes of all but the largest flow as a share of the largest; NaN where all flows are empty."""
        r = np.full(len(self), np.nan)
        np.divide(100.0 * (self.size - self.largest), self.largest, out=r, where=self.largest > 0)
        return r


def scan(batches: Iterable[Flows], gap_us: int) -> Iterator[Sessions]:
    """The sessions of sorted flows that come in batches of any size.

    A session is the flows of one key that begin at most ``gap_us`` after its first flow. It is held until the next
    begins, so that the memory is that of a batch and of the largest session.

    Raises :class:`UnsortedFlowsError`.
    """
    open_parts: list[Flows] = []
    seen = 0
    for batch in batches:
        if not len(batch):
            continue
        starts, unsorted = _starts(batch.key, batch.second_key, batch.start_us, gap_us, _held(open_parts))
        if unsorted != NONE:
            raise UnsortedFlowsError(seen + unsorted)
        seen += len(batch)
        if not len(starts):
            open_parts.append(batch)
            continue
        flows = Flows.joined([*open_parts, batch])
        held = len(flows) - len(batch)
        bounds = starts + held if held == 0 else np.concatenate([np.zeros(1, dtype=np.int64), starts + held])
        last = int(bounds[-1])
        if len(bounds) > 1:
            yield _measured(flows, bounds)
        # A copy, so that the batch is not kept alive by its last rows.
        open_parts = [Flows(*(column.copy() for column in _columns(flows.rows(last, len(flows)))))]
    if open_parts:
        flows = Flows.joined(open_parts)
        yield _measured(flows, np.array([0, len(flows)], dtype=np.int64))


def session_of(start_us: Whole, end_us: Whole, client_port: Whole, size: Whole) -> Sessions:
    """The columns of flows taken as one session, regardless of their starts; sorted by start."""
    return Sessions(*_measure(np.array([0, len(start_us)], dtype=np.int64), start_us, end_us, client_port, size))


def _columns(flows: Flows) -> list[Whole]:
    return [getattr(flows, field.name) for field in fields(Flows)]


def _held(parts: list[Flows]) -> Whole:
    """Whether a session is open, its two keys, its first start, and the last start seen."""
    if not parts:
        return np.zeros(5, dtype=np.int64)
    first, last = parts[0], parts[-1]
    return np.array([1, first.key[0], first.second_key[0], first.start_us[0], last.start_us[-1]], dtype=np.int64)


def _measured(flows: Flows, bounds: Whole) -> Sessions:
    return Sessions(*_measure(bounds, flows.start_us, flows.end_us, flows.client_port, flows.size))


@compiled()
def _starts(keys: Whole, second_keys: Whole, starts: Whole, gap: int, held: Whole) -> tuple[Whole, int]:
    """The rows at which sessions begin, and the first row that is not in order."""
    is_open, key, second_key, anchor, before = held[0] == 1, held[1], held[2], held[3], held[4]
    rows = np.empty(len(keys), dtype=np.int64)
    found = 0
    for row in range(len(keys)):
        same = is_open and keys[row] == key and second_keys[row] == second_key
        if is_open:
            ahead = keys[row] < key or (
                keys[row] == key
                and (second_keys[row] < second_key or (second_keys[row] == second_key and starts[row] < before))
            )
            if ahead:
                return rows[:found], row
        if not same or starts[row] - anchor > gap:
            is_open, key, second_key, anchor = True, keys[row], second_keys[row], starts[row]
            rows[found] = row
            found += 1
        before = starts[row]
    return rows[:found], NONE


@compiled()
def _measure(bounds: Whole, starts: Whole, ends: Whole, ports: Whole, sizes: Whole) -> tuple[npt.NDArray[Any], ...]:
    """The columns of :class:`Sessions`, for the rows between each two bounds."""
    count = len(bounds) - 1
    flows = np.empty(count, dtype=np.int64)
    parallel = np.zeros(count, dtype=np.bool_)
    longest_at = np.empty(count, dtype=np.int64)
    overlapping = np.full(count, NONE, dtype=np.int64)
    longest_us = np.empty(count, dtype=np.int64)
    overlap_us = np.zeros(count, dtype=np.int64)
    total = np.zeros(count, dtype=np.int64)
    largest = np.zeros(count, dtype=np.int64)
    for session in range(count):
        first, end = bounds[session], bounds[session + 1]
        longest = first
        for row in range(first, end):
            if ends[row] - starts[row] > ends[longest] - starts[longest]:
                longest = row
            if ports[row] != ports[first]:
                parallel[session] = True
            total[session] += sizes[row]
            largest[session] = max(largest[session], sizes[row])
        most = NONE
        for row in range(first, end):
            if row == longest:
                continue
            overlap = max(0, min(ends[row], ends[longest]) - max(starts[row], starts[longest]))
            if overlap > most:
                most = overlap
                overlapping[session] = row - first
        flows[session] = end - first
        longest_at[session] = longest - first
        longest_us[session] = ends[longest] - starts[longest]
        overlap_us[session] = max(0, most)
    return flows, parallel, longest_at, overlapping, longest_us, overlap_us, total, largest
