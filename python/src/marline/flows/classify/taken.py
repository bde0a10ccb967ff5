"""The flows that are used for training and classified: the same ones."""

from collections.abc import Iterable, Mapping

from marline.flows.columns import COLUMNS, HTTPS_PORT, possible
from marline.flows.features import FlowFeature

NO_FLOW = "is not a flow"
ELSEWHERE = f"is not to port {HTTPS_PORT}"
OTHER_TRANSPORT = "is neither of TCP nor of UDP"
INCOMPLETE = "lacks a number"


def value(feature: FlowFeature) -> str:
    """A feature as a number in SQL."""
    return f"CAST({feature.sql} AS DOUBLE)"


def conditions(features: Iterable[FlowFeature]) -> Mapping[str, str]:
    """The conditions of a record, in SQL, by the reason for excluding one that does not meet them, in order."""
    return {
        NO_FLOW: possible(COLUMNS),
        ELSEWHERE: f"server_port = {HTTPS_PORT}",
        # A record without the transport may be of either.
        OTHER_TRANSPORT: "coalesce(lower(transport) IN ('tcp', 'udp'), true)",
        INCOMPLETE: " AND ".join(f"isfinite({value(feature)})" for feature in features),
    }
