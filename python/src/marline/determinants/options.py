"""What is asked of an analysis."""

from dataclasses import dataclass, field

from marline.trees import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked."""

    class_mbps: float = 10.0
    """The width of a class of throughput."""
    folds: int = 10
    """Parts of the cross-validation."""
    seed: int = 1
    """Which rows are of which part."""
    by: str = "variant"
    """The column that tells the protocols apart; there is one tree for all if the table has none of this name."""
    group: str | None = None
    """A column, each of whose values is also held back as a whole: links, for example."""
    without: tuple[str, ...] = ()
    """Features that are left out."""
    settings: Settings = field(default_factory=Settings)
    """How trees grow."""
