"""The columns of a flow, independent of the program that wrote its record."""

from collections.abc import Collection, Mapping
from typing import Final

COLUMNS: Final = {
    "start_s": "DOUBLE",
    "end_s": "DOUBLE",
    "client_ip": "VARCHAR",
    "client_port": "INTEGER",
    "server_ip": "VARCHAR",
    "server_port": "INTEGER",
    "transport": "VARCHAR",
    "client_packets": "BIGINT",
    "server_packets": "BIGINT",
    "client_bytes": "BIGINT",
    "server_bytes": "BIGINT",
    "client_syn": "BOOLEAN",
    "client_ack": "BOOLEAN",
    "client_fin": "BOOLEAN",
    "server_syn": "BOOLEAN",
    "server_ack": "BOOLEAN",
    "server_fin": "BOOLEAN",
    "sni": "VARCHAR",
    "http_version": "VARCHAR",
    "label_source": "VARCHAR",
}
"""Names and types of what the analyses use of records; times in seconds since 1970."""

NEEDED: Final = ("start_s", "end_s", "client_ip", "client_port", "server_ip", "server_port")
"""Columns without which a record is not a flow."""

VERSIONS: Final = ("h1", "h2", "h3", "other")
"""Values of ``http_version``; NULL if it is unknown."""

HTTPS_PORT: Final = 443
"""Of the servers whose flows are characterised and classified (thesis, section 3.1)."""

TCP: Final = 0.0
UDP: Final = 1.0
"""Values of the transport as a feature; NaN if a record does not contain it."""

OVER: Final = {"h1": (TCP,), "h2": (TCP,), "h3": (UDP,), "other": (TCP, UDP)}
"""The transports that a version can go over."""

_END_OF_TIME_S: Final = 253_402_300_800
"""The first second of the year 10000, which no engine writes as a date."""

_MOST: Final = 1 << 53
"""Packets or bytes of a flow: 9 PB, beyond which floating point is not exact."""


def impossible(columns: Collection[str]) -> dict[str, str]:
    """Reasons why a record is not a flow, and the conditions that flows meet, in SQL for each engine.

    ``columns`` are those that a table has. The first reason that holds is that of a record. Both engines order NaN
    after all numbers.
    """
    counts = [f"{end}_{what}" for end in ("client", "server") for what in ("packets", "bytes")]
    counted = [f"coalesce({name}, 0) BETWEEN 0 AND {_MOST}" for name in counts if name in columns]
    return {
        "without a time, an address or a port": " AND ".join(f"{name} IS NOT NULL" for name in NEEDED),
        "end before they start": "end_s >= start_s",
        "of no time from 1970 to 9999": f"start_s >= 0 AND end_s < {_END_OF_TIME_S}",
        "with a port beyond 65535": " AND ".join(f"{end}_port BETWEEN 0 AND 65535" for end in ("client", "server")),
        "with a number of packets or bytes that cannot be": " AND ".join(counted) or "true",
    }


def possible(columns: Collection[str]) -> str:
    """Whether a record can be a flow; never NULL."""
    return f"coalesce({' AND '.join(f'({condition})' for condition in impossible(columns).values())}, false)"


def first_unmet(conditions: Mapping[str, str]) -> str:
    """The name of the first condition that a record does not meet, in SQL; NULL if it meets all."""
    cases = (f"WHEN NOT coalesce({condition}, false) THEN '{name}'" for name, condition in conditions.items())
    return f"CASE {' '.join(cases)} END"
