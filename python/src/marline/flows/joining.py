"""Flows of several records."""

import duckdb

from marline.flows.columns import COLUMNS

_OTHER_END = {"client": "server", "server": "client"}

REJOIN_S = 120
"""Records of one connection that are this close belong together: twice the usual active time-out of an exporter."""


def whole(records: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Records of parts of flows, joined to flows.

    The number of a flow is unique only within one file; in tables of several, a flow begins with its part 0.
    """
    same = "flow_id, client_ip, client_port, server_ip, server_port, transport"
    numbered = records.project(
        f"*, sum(CASE WHEN TRY_CAST(part AS BIGINT) = 0 THEN 1 ELSE 0 END) OVER (PARTITION BY {same} "
        "ORDER BY start_s, TRY_CAST(part AS BIGINT) ROWS UNBOUNDED PRECEDING) AS number"
    )
    told = ", ".join(f"arg_min({name}, start_s) AS {name}" for name in ("sni", "http_version", "label_source"))
    return _summed(numbered, same, told)


def bidirectional(records: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Records of single directions, joined to flows.

    Those of both directions and of one connection that an active time-out had split are one flow; the client is the
    end with the higher port.
    """
    turned = "server_port > client_port OR (server_port = client_port AND server_ip > client_ip)"
    ends = [
        f"CASE WHEN turned THEN {other}_{part} ELSE {end}_{part} END AS {end}_{part}"
        for end, other in _OTHER_END.items()
        for part in ("ip", "port", "packets", "bytes", "syn", "ack", "fin")
    ]
    oriented = records.project(f"*, {turned} AS turned").project(f"start_s, end_s, transport, {', '.join(ends)}")
    same = "client_ip, client_port, server_ip, server_port, transport"
    apart = oriented.project(
        f"*, start_s - max(end_s) OVER (PARTITION BY {same} ORDER BY start_s, end_s "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS apart_s"
    )
    numbered = apart.project(
        f"*, sum(CASE WHEN apart_s <= {REJOIN_S} THEN 0 ELSE 1 END) OVER "
        f"(PARTITION BY {same} ORDER BY start_s, end_s ROWS UNBOUNDED PRECEDING) AS number"
    )
    return _summed(numbered, same, "NULL AS sni, NULL AS http_version, NULL AS label_source")


def _summed(numbered: duckdb.DuckDBPyRelation, same: str, told: str) -> duckdb.DuckDBPyRelation:
    """Records of one number among the ``same``, as one; ``told`` are the expressions for names and versions."""
    sums = ", ".join(f"sum({end}_{part}) AS {end}_{part}" for end in _OTHER_END for part in ("packets", "bytes"))
    flags = ", ".join(f"bool_or({end}_{part}) AS {end}_{part}" for end in _OTHER_END for part in ("syn", "ack", "fin"))
    joined = numbered.aggregate(
        f"min(start_s) AS start_s, max(end_s) AS end_s, {same}, {sums}, {flags}, {told}", f"{same}, number"
    )
    return joined.project(", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items()))
