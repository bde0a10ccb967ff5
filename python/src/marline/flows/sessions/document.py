"""The analysis as JSON."""

from collections.abc import Mapping

from marline.flows.sessions.summary import Class, Distribution, Summary
from marline.json import Json


def to_json(summary: Summary, reasons: Mapping[str, int] | None = None) -> dict[str, Json]:
    """The document of ``--json``; with the excluded records, by their ``reasons``."""
    return {
        "flows": summary.flows,
        "sessions": summary.sessions,
        "isolated_flows": summary.isolated_flows,
        "parallel_flows": summary.parallel_flows,
        "isolated_percent": _percent(summary.isolated_flows, summary.flows),
        "parallel_percent": _percent(summary.parallel_flows, summary.flows),
        "isolated_sessions": summary.isolated_sessions,
        "parallel_sessions": summary.parallel_sessions,
        "parallel_sessions_percent": _percent(summary.parallel_sessions, summary.sessions),
        "flows_per_session_mean": summary.flows / summary.sessions if summary.sessions else None,
        "flows_per_parallel_session_mean": summary.flows_per_parallel_session,
        "overlap_s_mean": summary.overlap_s_mean,
        "time_overlap_percent": _distribution(summary.time_overlap),
        "data_overlap_percent": _distribution(summary.data_overlap),
        "time_overlap_by_duration": [_class(one) for one in summary.by_duration],
        "data_overlap_by_size": [_class(one) for one in summary.by_size],
        **({} if reasons is None else {"left_out": {**reasons}}),
    }


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _distribution(distribution: Distribution) -> dict[str, Json]:
    return {
        "median": distribution.percentile(50),
        "mean": distribution.mean,
        "p25": distribution.percentile(25),
        "p75": distribution.percentile(75),
    }


def _class(one: Class) -> dict[str, Json]:
    return {"class": one.name, "sessions": len(one.overlap.values), **_distribution(one.overlap)}
