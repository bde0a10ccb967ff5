"""Which version of HTTP each flow of a capture carries, told by two sources that do not know of each other."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from drive import MARKER_PORT

TOLERANCE_S: Final = 2.0
"""How far a request in the server's log may be from the packets of its flow: the log has when it began or ended."""

_TRANSPORTS: Final = {"1.1": ("h1", "tcp"), "2": ("h2", "tcp"), "3": ("h3", "udp")}


class LabelError(Exception):
    """A capture has no labels; the text says why."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many flows have which sources."""

    agree: int
    """Handshake and server's log tell the same version."""
    differ: int
    """They tell different ones, or the log tells several: the flow has no label."""
    handshake_only: int
    """What the secrets or the handshake show, without a request in the server's log."""
    server_log_only: int
    neither: int

    def to_json(self) -> dict[str, Any]:
        """The counts by name."""
        return asdict(self)


def labelled(
    connection: duckdb.DuckDBPyConnection, flows: Path, access_log: Path, marker: Path
) -> tuple[duckdb.DuckDBPyRelation, Agreement]:
    """The flows to port 443 of a capture, with times of the clock and with labels.

    ``flows`` are those that `marline flow` made with the secrets of the clients; its times begin with the marker.
    Raises :class:`LabelError`.
    """
    try:
        records = connection.read_parquet(str(flows))
        offset_s = _offset(records, marker)
        requests = _requests(connection, access_log)
    except (duckdb.Error, OSError, ValueError) as error:
        raise LabelError(f"{flows.parent}: {str(error).splitlines()[0]}") from error
    told = (
        records.filter("server_port = 443")
        .project(
            f"* REPLACE (start_s + {offset_s!r} AS start_s, end_s + {offset_s!r} AS end_s), "
            "row_number() OVER (ORDER BY start_s, flow_id) AS place"
        )
        .set_alias("flow")
    )
    by_log = (
        told.join(
            requests.set_alias("request"),
            "request.port = flow.client_port AND request.transport = flow.transport AND "
            f"request.time BETWEEN flow.start_s - {TOLERANCE_S} AND flow.end_s + {TOLERANCE_S}",
        )
        .aggregate("place, min(version) AS first_version, max(version) AS last_version", "place")
        .set_alias("logged")
    )
    both = told.join(by_log, "flow.place = logged.place", how="left").project(
        "flow.*, first_version AS logged_version, "
        "CASE WHEN first_version <> last_version OR http_version <> first_version THEN 'differ' "
        "WHEN http_version IS NOT NULL AND first_version IS NOT NULL THEN 'agree' "
        "WHEN http_version IS NOT NULL THEN 'handshake_only' "
        "WHEN first_version IS NOT NULL THEN 'server_log_only' ELSE 'neither' END AS agreement"
    )
    table = both.to_arrow_table()
    counts = dict(connection.from_arrow(table).aggregate("agreement, count(*)", "agreement").fetchall())
    agreement = Agreement(**{name: counts.get(name, 0) for name in Agreement.__dataclass_fields__})
    labels = connection.from_arrow(table).project(
        "* EXCLUDE (place, logged_version, agreement) REPLACE ("
        "CASE agreement WHEN 'differ' THEN NULL WHEN 'server_log_only' THEN logged_version ELSE http_version END "
        "AS http_version, "
        "CASE agreement WHEN 'differ' THEN NULL WHEN 'server_log_only' THEN 'server_log' ELSE label_source END "
        "AS label_source)"
    )
    return labels, agreement


def _offset(records: duckdb.DuckDBPyRelation, marker: Path) -> float:
    """What times of the capture lack to times of the clock: exact but for the delay of the link."""
    sent = records.filter(f"server_port = {MARKER_PORT} OR client_port = {MARKER_PORT}")
    first = sent.aggregate("min(start_s)").fetchall()[0][0]
    if first is None:
        raise LabelError(f"{marker.parent}: the capture lacks the datagram that says when it began")
    return float(marker.read_text(encoding="ascii")) - float(first)


def _requests(connection: duckdb.DuckDBPyConnection, access_log: Path) -> duckdb.DuckDBPyRelation:
    columns = {"time": "DOUBLE", "client": "VARCHAR", "http_version": "VARCHAR"}
    log = connection.read_json(str(access_log), format="newline_delimited", columns=columns)
    versions = " ".join(f"WHEN '{name}' THEN '{version}'" for name, (version, _) in _TRANSPORTS.items())
    transports = " ".join(f"WHEN '{name}' THEN '{transport}'" for name, (_, transport) in _TRANSPORTS.items())
    return log.project(
        "time, CAST(regexp_extract(client, ':([0-9]+)$', 1) AS INTEGER) AS port, "
        f"CASE http_version {versions} END AS version, CASE http_version {transports} END AS transport"
    )
