"""Statistics of the sessions of a capture: tables and figures of chapter 4 of the study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from marline.flows.sessions.scan import Real, Sessions, Whole

DURATION_BOUNDS_S = (10.0, 60.0, 600.0)
"""Between the classes of sessions by the duration of their longest flow (section 4.3.4)."""

SIZE_BOUNDS_KB = (5.0, 10.0, 50.0, 500.0)
"""Between the classes of sessions by the bytes of their largest flow (section 4.3.5)."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sorted series."""

    values: Real

    @property
    def mean(self) -> float | None:
        """The mean; None if empty."""
        return float(self.values.mean()) if len(self.values) else None

    def percentile(self, percent: float) -> float | None:
        """The quantile of the share ``part``, with linear interpolation."""
        return float(np.percentile(self.values, percent)) if len(self.values) else None

    def share_of_at_least(self, value: float) -> float | None:
        """The share of values that are not below one."""
        if not len(self.values):
            return None
        return 1 - int(np.searchsorted(self.values, value, side="left")) / len(self.values)


@dataclass(frozen=True, slots=True)
class Class:
    """Parallel sessions whose longest or largest flow is of one class."""

    name: str
    overlap: Distribution
    """Of time or of data, in percent."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All sessions of a capture."""

    isolated_flows: int
    parallel_flows: int
    isolated_sessions: int
    parallel_sessions: int
    flows_by_session: Whole
    """The number of sessions with 0, 1, 2, ... flows."""
    time_overlap: Distribution
    """p of parallel sessions, percent."""
    data_overlap: Distribution
    """r of parallel sessions whose flows are not empty, percent."""
    overlap_s_mean: float | None
    by_duration: tuple[Class, ...]
    by_size: tuple[Class, ...]

    @property
    def flows(self) -> int:
        """All flows."""
        return self.isolated_flows + self.parallel_flows

    @property
    def sessions(self) -> int:
        """All sessions."""
        return self.isolated_sessions + self.parallel_sessions

    @property
    def flows_per_parallel_session(self) -> float | None:
        """The mean number of flows of a parallel session."""
        return self.parallel_flows / self.parallel_sessions if self.parallel_sessions else None


def summarise(batches: Iterable[Sessions]) -> Summary:
    """Read all sessions; keeps four numbers of each parallel one."""
    flows = {False: 0, True: 0}
    sessions = {False: 0, True: 0}
    counts = np.zeros(2, dtype=np.int64)
    kept: list[tuple[Real, Real, Real, Real]] = []
    overlap_us = 0
    for batch in batches:
        for parallel in (False, True):
            of = batch.parallel == parallel
            sessions[parallel] += int(of.sum())
            flows[parallel] += int(batch.flows[of].sum())
        more = np.bincount(batch.flows)
        longer, shorter = (more, counts) if len(more) > len(counts) else (counts, more)
        counts = longer.copy()
        counts[: len(shorter)] += shorter
        of = batch.parallel
        overlap_us += int(batch.overlap_us[of].sum())
        kept.append(
            (
                batch.time_overlap_percent[of],
                batch.data_overlap_percent[of],
                batch.longest_us[of] / 1e6,
                batch.largest[of] / 1e3,
            )
        )
    columns = [np.concatenate(column) for column in zip(*kept, strict=True)] if kept else [np.zeros(0)] * 4
    p, r, longest_s, largest_kb = columns
    carries = ~np.isnan(r)
    return Summary(
        isolated_flows=flows[False],
        parallel_flows=flows[True],
        isolated_sessions=sessions[False],
        parallel_sessions=sessions[True],
        flows_by_session=counts,
        time_overlap=Distribution(np.sort(p)),
        data_overlap=Distribution(np.sort(r[carries])),
        overlap_s_mean=overlap_us / 1e6 / sessions[True] if sessions[True] else None,
        by_duration=_classes(p, longest_s, DURATION_BOUNDS_S, "s"),
        by_size=_classes(r[carries], largest_kb[carries], SIZE_BOUNDS_KB, "kB"),
    )


def _classes(overlap: Real, by: Real, bounds: Sequence[float], unit: str) -> tuple[Class, ...]:
    """A bound itself is of the class below it, the shortest class excepted: "less than 10 s", "10 to 60 s"."""
    ends = [f"{bound:g}" for bound in bounds]
    names = [f"below {ends[0]} {unit}"]
    names += [f"{low} to {high} {unit}" for low, high in pairwise(ends)]
    names.append(f"above {ends[-1]} {unit}")
    of = np.searchsorted(bounds, by, side="left")
    of[by == bounds[0]] = 1
    return tuple(Class(name, Distribution(np.sort(overlap[of == at]))) for at, name in enumerate(names))
