"""Options of an analysis."""

from dataclasses import dataclass, field

from marline.trees import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an analysis."""

    class_mbps: float = 10.0
    """The width of a class of throughput."""
    folds: int = 10
    """Parts of the cross-validation."""
    seed: int = 1
    """The seed of the assignment of rows to parts."""
    by: str = "variant"
    """The column that distinguishes the protocols; without it in the table, there is one tree for all."""
    group: str | None = None
    """A column, each of whose values is also held out as a whole: links, for example."""
    without: tuple[str, ...] = ()
    """Features to exclude."""
    settings: Settings = field(default_factory=Settings)
    """Parameters of growing trees."""
