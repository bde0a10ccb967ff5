"""Options of a characterisation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The amount of data shown."""

    sample: int = 1500
    """Flows of each version in the scatter pictures."""
    services: int = 10
    """Services whose versions are shown, those of most flows."""
