"""What is asked of an analysis of sessions."""

from dataclasses import dataclass

from marline.flows.columns import VERSIONS

ANY_VERSION = "any"

HTTP_VERSIONS = (*VERSIONS, ANY_VERSION)
"""Values of ``--http``."""

ENGINES = ("duckdb", "spark")
"""Values of ``--engine``."""


@dataclass(frozen=True, slots=True)
class Options:
    """How sessions are found."""

    gap_s: float = 5.0
    """A session's flows begin at most this long after its first."""
    http: str = "h2"
    """The version of HTTP whose flows are looked at, or :data:`ANY_VERSION`."""
    without: tuple[str, ...] = ()
    """Addresses or prefixes of clients that are left out: NATs, behind which many users are one client."""
    engine: str = "duckdb"
    spark_master: str = "local[*]"
    """Where Spark runs: on the processors of this machine, or the address of a cluster that reads the same path."""

    @property
    def gap_us(self) -> int:
        """The gap as the engines compare it."""
        return round(self.gap_s * 1e6)
