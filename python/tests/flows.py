"""Records of flows for tests: generated, and never presented as real traffic."""

from pathlib import Path

import duckdb

GENERATED = """
    SELECT
        'flow-' || i AS flow_id,
        1700000000 + start_s AS start_s,
        1700000000 + start_s + duration_s AS end_s,
        '10.0.' || (client % 3) || '.' || (client // 3) AS client_ip,
        CAST(1024 + hash(i, 'port') % 60000 AS INTEGER) AS client_port,
        '192.0.2.' || (hash(i, 'server') % 4) AS server_ip,
        443 AS server_port,
        'tcp' AS transport,
        CAST(10 + hash(i, 'cp') % 100 AS BIGINT) AS client_packets,
        CAST(10 + hash(i, 'sp') % 1000 AS BIGINT) AS server_packets,
        CAST(hash(i, 'cb') % 100000 AS BIGINT) AS client_bytes,
        CAST(hash(i, 'sb') % 1000000 AS BIGINT) AS server_bytes,
        true AS client_syn, true AS client_ack, true AS client_fin,
        true AS server_syn, true AS server_ack, hash(i, 'fin') % 2 = 0 AS server_fin,
        CASE WHEN hash(i, 'name') % 5 > 0 THEN 'name-' || (hash(i, 'name') % 5) || '.example' END AS sni,
        CASE hash(i, 'version') % 4 WHEN 0 THEN 'h1' WHEN 3 THEN NULL ELSE 'h2' END AS http_version,
        'keylog' AS label_source
    FROM (
        SELECT
            i,
            CAST(hash(i, 'client') % 20 AS INTEGER) AS client,
            (hash(i, 'start') % 3600000) / 1000 AS start_s,
            (hash(i, 'duration') % 30000) / 1000 AS duration_s
        FROM range({count}) AS numbers(i)
    )
"""
"""Flows with our columns, as many as asked for, the same each time."""


def write_flows(path: Path, count: int = 20_000) -> Path:
    """Write generated flows as Parquet or CSV, by the suffix."""
    kind = "PARQUET" if path.suffix == ".parquet" else "CSV, HEADER"
    duckdb.connect().execute(f"COPY ({GENERATED.format(count=count)}) TO '{path}' (FORMAT {kind})")
    return path


VERSIONS = """
    SELECT
        'flow-' || i AS flow_id,
        1700000000 + i / 100 AS start_s,
        1700000000 + i / 100 + duration AS end_s,
        '10.0.0.' || (i % 200) AS client_ip,
        CAST(1024 + i % 60000 AS INTEGER) AS client_port,
        '192.0.2.1' AS server_ip,
        443 AS server_port,
        CASE version WHEN 'h3' THEN 'udp' ELSE 'tcp' END AS transport,
        packets AS client_packets, packets * 2 AS server_packets,
        CAST(packets * size AS BIGINT) AS client_bytes,
        CAST(packets * 2 * size * 1.5 AS BIGINT) AS server_bytes,
        true AS client_syn, true AS client_ack, true AS client_fin,
        true AS server_syn, true AS server_ack, true AS server_fin,
        'name-' || (hash(i, 'name') % 5) || '.example' AS sni,
        version AS http_version,
        'keylog' AS label_source
    FROM (
        SELECT
            i, version,
            CAST(5 + hash(i, 'packets') % 40 AS BIGINT) AS packets,
            CASE version WHEN 'h1' THEN 300 WHEN 'h2' THEN 120 ELSE 200 END + hash(i, 'size') % 110 AS size,
            CASE version WHEN 'h1' THEN 2 ELSE 60 END * (1 + (hash(i, 'duration') % 1000) / 300) AS duration
        FROM (SELECT i, CASE hash(i, 'version') % 5 WHEN 0 THEN 'h3' WHEN 1 THEN 'h1' WHEN 2 THEN 'h1' ELSE 'h2' END
              AS version FROM range({first}, {first} + {count}) AS numbers(i))
    )
"""
"""Flows whose features determine the version, except for an overlap of the sizes."""


def write_labelled(path: Path, count: int = 2000, first: int = 0) -> Path:
    """Write generated flows with labels as Parquet; those of other numbers are other flows."""
    duckdb.connect().execute(f"COPY ({VERSIONS.format(count=count, first=first)}) TO '{path}' (FORMAT PARQUET)")
    return path
