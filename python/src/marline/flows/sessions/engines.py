"""Engines that read and sort flows: both run the same scan over what they sorted."""

import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import duckdb

from marline.errors import MarlineError, UnreadableFileError
from marline.flows.addresses import outside, steps, within
from marline.flows.columns import COLUMNS, first_unmet, impossible
from marline.flows.formats import MARLINE
from marline.flows.sessions.options import ANY_VERSION, Options
from marline.flows.sessions.scan import Flows, Sessions, scan
from marline.flows.source import FlowFile
from marline.tables import quoted, reason

BATCH = 122_880
"""Flows in a batch: a row group of DuckDB."""

_COLUMNS = [field.name for field in fields(Sessions)]


class EngineError(MarlineError):
    """An engine cannot execute the analysis."""


def sessions(flows: FlowFile, options: Options) -> Iterator[Sessions]:
    """The sessions of a file, in an order that depends on the engine; all engines yield the same sessions.

    Whether the engine is available, and can read the file, is checked at once.

    Raises :class:`EngineError`, :class:`UnreadableFileError` and
    :class:`marline.flows.sessions.scan.UnsortedFlowsError`.
    """
    if options.engine != "spark":
        return _duckdb(flows, options)
    _require_spark(flows)
    return _spark(flows, options)


CLIENT: Final = "client_number"
"""The client's address, in the form that is compared with prefixes."""


def chosen(options: Options, columns: Collection[str]) -> dict[str, str]:
    """The conditions of the analysed flows, by the reason for excluding others, in SQL.

    Records have the column :data:`CLIENT` by the :func:`marline.flows.addresses.steps`, if clients are excluded.
    """
    conditions = impossible(columns)
    if options.http != ANY_VERSION:
        conditions[f"not of {options.http}"] = f"http_version = '{options.http}'"
    if options.without:
        left_out = " OR ".join(within(CLIENT, ip_network(prefix)) for prefix in options.without)
        conditions["of clients that are left out"] = f"NOT ({left_out})"
    return conditions


def looked_at(flows: FlowFile, options: Options) -> tuple[duckdb.DuckDBPyRelation, dict[str, str]]:
    """All records, with the columns for the conditions, and the conditions."""
    records = flows.relation
    for name, expression in steps("client_ip", CLIENT) if options.without else []:
        records = records.project(f"*, {expression} AS {name}")
    return records, chosen(options, COLUMNS)


def _duckdb(flows: FlowFile, options: Options) -> Iterator[Sessions]:
    # One bit of the hashes is given up, so that they are signed numbers that both sort alike.
    hashed = "CAST(hash({}) >> 1 AS BIGINT)"
    name = "coalesce(sni, '')"
    records, conditions = looked_at(flows, options)
    sorted_flows = (
        records.filter(f"{first_unmet(conditions)} IS NULL")
        .project(
            f"{hashed.format(f'client_ip, server_ip, {name}')} AS key, "
            f"{hashed.format(f'{name}, client_ip, server_ip')} AS second_key, "
            "CAST(round(start_s * 1e6) AS BIGINT) AS start_us, CAST(round(end_s * 1e6) AS BIGINT) AS end_us, "
            "CAST(client_port AS BIGINT) AS client_port, "
            "CAST(coalesce(client_bytes, 0) + coalesce(server_bytes, 0) AS BIGINT) AS size"
        )
        .order("key, second_key, start_us")
    )
    try:
        yield from scan(map(Flows.of, sorted_flows.to_arrow_reader(BATCH)), options.gap_us)
    except duckdb.Error as error:
        raise UnreadableFileError(flows.path, reason(error)) from error


def _require_spark(flows: FlowFile) -> None:
    if flows.format != MARLINE.name or flows.path.suffix != ".parquet":
        raise EngineError(
            f"{flows.path}: Spark reads Parquet with the columns of flows; for other records use --engine duckdb"
        )
    if flows.in_parts:
        raise EngineError(
            f"{flows.path}: has flows in parts, which Spark does not join: use --engine duckdb, or export without "
            "--active-timeout"
        )
    try:
        import pyspark.sql  # noqa: F401, PLC0415 - an engine that is not there must not stop the other
    except ImportError as error:
        raise EngineError("Spark is not installed: pip install './python[spark]', and a Java runtime") from error
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise EngineError("Spark needs a Java runtime: there is no `java` on the path, and JAVA_HOME is not set")


def _spark(flows: FlowFile, options: Options) -> Iterator[Sessions]:
    """Spark reads Parquet with our columns itself, partitions by key, and scans each partition where it is."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see above

    # The workers run the same Python as this process, unless a cluster is configured otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("marline sessions").master(options.spark_master)
    if options.spark_master.startswith("local"):
        # It must not be reachable from other machines.
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    key = "xxhash64({})"
    name = "coalesce(sni, '')"
    gap_us = options.gap_us

    networks = [ip_network(prefix) for prefix in options.without]

    def scanned(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - runs in the workers

        if networks:
            # Its own expressions would be written out within each other, and be beyond number.
            kept = outside(networks)
            batches = (
                batch.filter(pa.array([kept(address) for address in batch["client_ip"].to_pylist()]))
                for batch in batches
            )
        for found in scan(map(Flows.of, batches), gap_us):
            yield pa.record_batch([pa.array(getattr(found, column)) for column in _COLUMNS], names=_COLUMNS)

    table = (
        spark.read.parquet(str(flows.path.absolute()))
        .where(f"{first_unmet(chosen(replace(options, without=()), flows.has))} IS NULL")
        .selectExpr(
            f"{key.format(f'client_ip, server_ip, {name}')} AS key",
            f"{key.format(f'{name}, client_ip, server_ip')} AS second_key",
            "CAST(round(start_s * 1e6) AS BIGINT) AS start_us",
            "CAST(round(end_s * 1e6) AS BIGINT) AS end_us",
            "CAST(client_port AS BIGINT) AS client_port",
            "CAST(coalesce(client_bytes, 0) + coalesce(server_bytes, 0) AS BIGINT) AS size",
            "client_ip",
        )
        .repartition("key")
        .sortWithinPartitions("key", "second_key", "start_us")
        .mapInArrow(scanned, ", ".join(f"{c} {'boolean' if c == 'parallel' else 'bigint'}" for c in _COLUMNS))
    )
    # Through files, so that the driver holds a batch and not all sessions.
    with tempfile.TemporaryDirectory(prefix="marline-sessions-") as scratch:
        out = Path(scratch) / "sessions"
        try:
            table.write.parquet(str(out))
        except Exception as error:
            raise EngineError(f"{flows.path}: Spark: {str(error).splitlines()[0]}") from error
        finally:
            spark.stop()
        columns = ", ".join(map(quoted, _COLUMNS))
        found = duckdb.connect().read_parquet(str(out / "*.parquet")).project(columns)
        for batch in found.to_arrow_reader(BATCH):
            yield Sessions(*(batch[column].to_numpy(zero_copy_only=False) for column in _COLUMNS))
