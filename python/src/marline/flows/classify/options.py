"""Options of an evaluation."""

from dataclasses import dataclass
from pathlib import Path

from marline.flows.classify.learners import ALGORITHMS


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of the comparison of algorithms."""

    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    folds: int = 10
    seed: int = 1
    tests: tuple[Path, ...] = ()
    """Flows of other times or places, with which a model of the whole file is tested."""
    features: str | None = None
    """One of :data:`marline.flows.features.FEATURE_SETS`; by default with the transport, if the records have it."""
