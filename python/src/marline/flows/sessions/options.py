"""Options of an analysis of sessions."""

from dataclasses import dataclass

from marline.flows.columns import VERSIONS

ANY_VERSION = "any"

HTTP_VERSIONS = (*VERSIONS, ANY_VERSION)
"""Values of ``--http``."""

ENGINES = ("duckdb", "spark")
"""Values of ``--engine``."""


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of finding sessions."""

    gap_s: float = 5.0
    """A session's flows begin at most this long after its first."""
    http: str = "h2"
    """The version of HTTP whose flows are analysed, or :data:`ANY_VERSION`."""
    without: tuple[str, ...] = ()
    """Addresses or prefixes of excluded clients: NATs, behind which many users appear as one client."""
    engine: str = "duckdb"
    spark_master: str = "local[*]"
    """Where Spark runs: on the processors of this machine, or the address of a cluster that reads the same path."""

    @property
    def gap_us(self) -> int:
        """The gap in the unit of the engines."""
        return round(self.gap_s * 1e6)
