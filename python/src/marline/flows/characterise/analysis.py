"""Distributions of properties of flows, by version of HTTP: figure 3.3 of the study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from marline.arrays import Numbers
from marline.errors import MarlineError, UnreadableFileError
from marline.flows.characterise.adoption import Service, adoption
from marline.flows.characterise.options import Options
from marline.flows.columns import COLUMNS, HTTPS_PORT, VERSIONS, first_unmet, impossible
from marline.flows.features import SELECTED, FlowFeature
from marline.flows.source import FlowFile
from marline.progress import Progress
from marline.tables import reason

QUANTITIES: Final = SELECTED
"""The quantities: duration; packets, bytes, and bytes a packet of both ends."""

BINS: Final = 100
"""The number of bins for each power of ten: neighbouring bins differ by 2.3 %."""

SCATTERED: Final = ("client_bytes_per_packet", "server_bytes_per_packet", "duration_s")
"""Of the flows that are drawn as points."""


class NoLabelsError(MarlineError):
    """No flow has a version."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values in narrow bins; the share up to each of ``values`` is exact."""

    values: Numbers
    """The largest of each bin, ascending."""
    counts: Numbers
    """Values in each bin."""
    mean: float

    def percentile(self, percent: float) -> float:
        """The quantile of the share ``part``, rounded up to the end of its bin."""
        up_to = np.cumsum(self.counts)
        return float(self.values[np.searchsorted(up_to, percent / 100 * up_to[-1] - 1e-9)])

    def share_below(self, value: float) -> float:
        """The share of values below one; exact for powers of ten, and for whole numbers up to 40."""
        return float(self.counts[self.values < value].sum() / self.counts.sum())


@dataclass(frozen=True, slots=True)
class Kind:
    """The flows of one version."""

    version: str
    flows: int
    of: dict[str, Distribution]
    """By the column of each of :data:`QUANTITIES`; without those that no record has."""
    points: dict[str, Numbers]
    """Some flows: a series for each of :data:`SCATTERED`."""


@dataclass(frozen=True, slots=True)
class Report:
    """The characterisation of a file."""

    source: Path
    format: str
    options: Options
    records: int
    """In the file."""
    kinds: tuple[Kind, ...]
    """Of the versions that occur, in the order of :data:`VERSIONS`."""
    services: tuple[Service, ...]
    reasons: dict[str, int]
    """Excluded records, each by the first reason that applies."""

    @property
    def left_out(self) -> int:
        """Records without a version, of another port, or that are not flows."""
        return self.records - sum(kind.flows for kind in self.kinds)


def analyse(path: Path, options: Options) -> Report:
    """Characterise the flows of a file, which can be larger than the memory. Raises :class:`MarlineError`."""
    flows = FlowFile.open(path)
    progress = Progress(4)
    https = flows.flows.filter(f"server_port = {HTTPS_PORT}")
    labelled = https.filter(f"http_version IN {VERSIONS}")
    try:
        records = sum(flows.versions().values())
        progress.step("versions")
        counts = dict(labelled.aggregate("http_version, count(*)", "http_version").fetchall())
        if not counts:
            raise NoLabelsError(
                f"{path}: {records:,} records, and none is a flow to port {HTTPS_PORT} whose `http_version` is known"
            )
        progress.step("distributions")
        distributions = _distributions(labelled)
        progress.step("points")
        kinds = tuple(
            Kind(name, counts[name], distributions.get(name, {}), _points(labelled, name, options.sample))
            for name in VERSIONS
            if name in counts
        )
        asked = {
            **impossible(COLUMNS),
            f"not to port {HTTPS_PORT}": f"server_port = {HTTPS_PORT}",
            "without a label": f"http_version IN {VERSIONS}",
        }
        left_out = flows.relation.project(f"{first_unmet(asked)} AS why").filter("why IS NOT NULL")
        reasons = dict(left_out.aggregate("why, count(*)", "why").order("why").fetchall())
        progress.step("services")
        services = adoption(https, options.services)
    except duckdb.Error as error:
        raise UnreadableFileError(path, reason(error)) from error
    finally:
        progress.end()
    return Report(path, flows.format, options, records, kinds, services, reasons)


def _distributions(flows: duckdb.DuckDBPyRelation) -> dict[str, dict[str, Distribution]]:
    """Of each version, of each quantity that it has; one pass, whose memory is that of the bins."""
    pairs = ", ".join(f"{{'which': {at}, 'value': {_number(feature)}}}" for at, feature in enumerate(QUANTITIES))
    columns = (
        flows.project(f"http_version, unnest([{pairs}]) AS pair")
        .project("http_version, pair.which AS which, pair.value AS value")
        .filter("isfinite(value)")
        .aggregate(
            "http_version, which, max(value) AS up_to, count(*) AS counted, sum(value) AS total",
            f"http_version, which, {_bin('value')}",
        )
        .order("http_version, which, up_to")
        .fetchnumpy()
    )
    found: dict[str, dict[str, Distribution]] = {}
    names, which = np.asarray(columns["http_version"]).astype(str), np.asarray(columns["which"])
    for name in np.unique(names):
        for at, feature in enumerate(QUANTITIES):
            of = (names == name) & (which == at)
            if not of.any():
                continue
            values, counts, total = (
                np.asarray(columns[key], dtype=np.float64)[of] for key in ("up_to", "counted", "total")
            )
            mean = float(total.sum() / counts.sum())
            found.setdefault(str(name), {})[feature.column] = Distribution(values, counts, mean)
    return found


def _points(flows: duckdb.DuckDBPyRelation, version: str, most: int) -> dict[str, Numbers]:
    """Flows by the order of a hash: as good as at random, and the same each time."""
    features = {feature.column: feature for feature in QUANTITIES}
    columns = ", ".join(f"{_number(features[name])} AS {name}" for name in SCATTERED)
    present = " AND ".join(f"isfinite({name})" for name in SCATTERED)
    found = (
        flows.filter(f"http_version = '{version}'")
        .project(f"{columns}, hash(start_s, end_s, client_ip, client_port, server_ip) AS place")
        .filter(present)
        .order("place")
        .limit(most)
        .fetchnumpy()
    )
    return {name: np.asarray(found[name], dtype=np.float64) for name in SCATTERED}


def _number(feature: FlowFeature) -> str:
    return f"CAST({feature.sql} AS DOUBLE)"


def _bin(value: str) -> str:
    """Values that are not above 0 are in one bin."""
    return f"CASE WHEN {value} > 0 THEN CAST(floor(log10({value}) * {BINS}) AS INTEGER) END"
