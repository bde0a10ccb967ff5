"""Which flows are learnt from and classified: the same ones."""

from collections.abc import Iterable, Mapping

from marline.flows.columns import COLUMNS, HTTPS_PORT, possible
from marline.flows.features import FlowFeature

NO_FLOW = "is no flow"
ELSEWHERE = f"is not to port {HTTPS_PORT}"
OTHER_TRANSPORT = "is neither of TCP nor of UDP"
INCOMPLETE = "lacks a number"


def value(feature: FlowFeature) -> str:
    """A feature as a number in SQL."""
    return f"CAST({feature.sql} AS DOUBLE)"


def conditions(features: Iterable[FlowFeature]) -> Mapping[str, str]:
    """The conditions of a record, in SQL, by the reason for which one that does not meet them is left out, in order."""
    return {
        NO_FLOW: possible(COLUMNS),
        ELSEWHERE: f"server_port = {HTTPS_PORT}",
        # A record that does not say may be of either.
        OTHER_TRANSPORT: "coalesce(lower(transport) IN ('tcp', 'udp'), true)",
        INCOMPLETE: " AND ".join(f"isfinite({value(feature)})" for feature in features),
    }
