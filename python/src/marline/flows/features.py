"""The features by which flows are classified (thesis of J. Manzoor, 2019, section 3.2.3)."""

from dataclasses import dataclass
from typing import Final

_ENDS = ("client", "server")


@dataclass(frozen=True, slots=True)
class FlowFeature:
    """A number of a flow."""

    column: str
    label: str
    sql: str
    """An expression over the columns of a flow; NULL if a record does not contain them."""


def _rate(what: str) -> str:
    return f"CASE WHEN end_s > start_s THEN {what} / (end_s - start_s) WHEN {what} IS NOT NULL THEN 0 END"


def _of(end: str) -> list[FlowFeature]:
    flags = [
        FlowFeature(f"{end}_{flag}", f"{end}'s {flag.upper()}", f"CAST({end}_{flag} AS INTEGER)")
        for flag in ("syn", "ack", "fin")
    ]
    return [
        FlowFeature(f"{end}_packets", f"{end}'s packets", f"{end}_packets"),
        FlowFeature(f"{end}_bytes", f"{end}'s bytes", f"{end}_bytes"),
        FlowFeature(
            f"{end}_bytes_per_packet",
            f"{end}'s bytes a packet",
            f"CASE WHEN {end}_packets > 0 THEN {end}_bytes / {end}_packets WHEN {end}_packets = 0 THEN 0 END",
        ),
        FlowFeature(f"{end}_packets_per_s", f"{end}'s packets/s", _rate(f"{end}_packets")),
        FlowFeature(f"{end}_bytes_per_s", f"{end}'s bytes/s", _rate(f"{end}_bytes")),
        *flags,
    ]


CANDIDATES: Final = (
    FlowFeature("duration_s", "duration, s", "end_s - start_s"),
    *(feature for end in _ENDS for feature in _of(end)),
)
"""The 17 candidates."""

_SELECTED = {
    "client_bytes",
    "server_bytes",
    "client_packets",
    "server_packets",
    "client_bytes_per_packet",
    "server_bytes_per_packet",
    "duration_s",
}

SELECTED: Final = tuple(feature for feature in CANDIDATES if feature.column in _SELECTED)
"""The seven that the study selects."""

TRANSPORT: Final = FlowFeature(
    "transport", "transport", "CASE lower(transport) WHEN 'tcp' THEN 0 WHEN 'udp' THEN 1 END"
)
"""0 for TCP, 1 for UDP: the study, which knew no HTTP over UDP, does not have it."""

FEATURE_SETS: Final = {"transport": (*SELECTED, TRANSPORT), "published": SELECTED}
"""Features of models, by the name of the set."""
