"""Units of metrics, which are the suffixes of their names."""

from dataclasses import dataclass
from typing import Final

_UNITS: Final = (
    ("_s", "s"), ("_ms", "ms"), ("_us", "µs"), ("_bytes", "bytes"), ("_kb", "kB"), ("_mb", "MB"), ("_bps", "bit/s"),
    ("_kbps", "kbit/s"), ("_mbps", "Mbit/s"), ("_gbps", "Gbit/s"), ("_percent", "%"), ("_ratio", "share of 1"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quantity:
    """A metric or parameter: its name in words, and its unit, which is empty for numbers."""

    words: str
    unit: str

    @classmethod
    def of(cls, name: str) -> "Quantity":
        """The quantity of a column."""
        for suffix, unit in _UNITS:
            if name.endswith(suffix):
                return cls(_words(name.removesuffix(suffix)), unit)
        return cls(_words(name), "")

    @property
    def title(self) -> str:
        """The title of an axis."""
        return f"{self.words} ({self.unit})" if self.unit else self.words


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")
