"""The versions that the services of most flows use, over time (figure 3.2 of the study)."""

from dataclasses import dataclass
from typing import Final

import duckdb

from marline.flows.columns import VERSIONS
from marline.tables import text_literal

KINDS: Final = (*VERSIONS, "unknown")
"""Columns of the shares; unknown are flows without a label."""

MOST_PERIODS: Final = 24
"""Columns of a table that can still be read; the last ones of more are taken."""

_DAY_S: Final = 86_400

_SERVICE: Final = (
    r"coalesce(nullif(regexp_extract(lower(sni), "
    r"'([^.]+\.(?:(?:ac|co|com|edu|gov|net|org)\.[a-z][a-z]|[^.]+))\.?$', 1), ''), lower(sni))"
)
"""The registrable part of a name, as far as its form shows."""


@dataclass(frozen=True, slots=True)
class Period:
    """The flows of a service in a span of time."""

    begin: str
    """In UTC, with the precision of the span."""
    flows: tuple[int, ...]
    """Of each of :data:`KINDS`."""


@dataclass(frozen=True, slots=True)
class Service:
    """The names under one registrable domain."""

    name: str
    flows: int
    periods: tuple[Period, ...]
    """The same ones for all services."""


def adoption(https: duckdb.DuckDBPyRelation, most: int) -> tuple[Service, ...]:
    """The services of most flows, by months, days or hours, depending on the length of the capture, which has flows."""
    first, last = https.aggregate("min(start_s), max(start_s)").fetchall()[0]
    unit, form = _unit(last - first)
    time = f"date_trunc('{unit}', make_timestamp(CAST(start_s * 1e6 AS BIGINT)))"
    named = https.filter("sni IS NOT NULL AND sni <> ''").project(
        f"{_SERVICE} AS service, {time} AS time, http_version"
    )
    largest = (
        named.aggregate("service, count(*) AS flows", "service").order("flows DESC, service").limit(most).fetchall()
    )
    counts = [f"count(*) FILTER (http_version = '{name}')" for name in VERSIONS]
    rows = (
        named.filter(f"service IN ({', '.join(map(text_literal, (name for name, _ in largest))) or 'NULL'})")
        .aggregate(f"service, time, {', '.join(counts)}, count(*) FILTER (http_version IS NULL)", "service, time")
        .fetchall()
    )
    found = {(name, time): tuple(of) for name, time, *of in rows}
    times = sorted({time for _, time in found})[-MOST_PERIODS:]
    nothing = (0,) * len(KINDS)
    return tuple(
        Service(name, flows, tuple(Period(format(time, form), found.get((name, time), nothing)) for time in times))
        for name, flows in largest
    )


def _unit(span_s: float) -> tuple[str, str]:
    """The part of a date by which time is divided, and its format."""
    if span_s > 62 * _DAY_S:
        return "month", "%Y-%m"
    if span_s > 2 * _DAY_S:
        return "day", "%Y-%m-%d"
    return "hour", "%Y-%m-%d %H h"
