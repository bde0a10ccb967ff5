"""What is asked of an evaluation."""

from dataclasses import dataclass
from pathlib import Path

from marline.flows.classify.learners import ALGORITHMS


@dataclass(frozen=True, slots=True)
class Options:
    """How algorithms are compared."""

    algorithms: tuple[str, ...] = tuple(ALGORITHMS)
    folds: int = 10
    seed: int = 1
    test: Path | None = None
    """Flows of another time or place, by which what was learnt from all of the file is tested."""
