"""The predicted version of a flow, by the probabilities and by the versions that its transport can carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.flows.columns import OVER, TCP, UDP

DEFAULT_THRESHOLD: Final = 0.6
"""The least probability of an answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The predicted versions of flows."""

    probabilities: Numbers
    """Of each flow (row) and class (column); 0 for versions that its transport cannot carry, or all 0."""

    @classmethod
    def of(cls, probabilities: Numbers, transport: Numbers, names: Sequence[str]) -> "Decision":
        """The probabilities of a model, without versions that a flow's transport (NaN if unknown) cannot carry."""
        can = np.ones(probabilities.shape, dtype=np.bool_)
        for over in (TCP, UDP):
            can[transport == over] = [over in OVER[name] for name in names]
        left = np.where(can, probabilities, 0)
        whole = left.sum(axis=1, keepdims=True)
        # If a model gives no probability to the possible versions, these are equally likely.
        left = np.where(whole > 0, left, can).astype(np.float64)
        whole = left.sum(axis=1, keepdims=True)
        return cls(np.divide(left, whole, out=np.zeros_like(left), where=whole > 0))

    @property
    def classes(self) -> Classes:
        """The most probable class of each flow."""
        best: Classes = self.probabilities.argmax(axis=1)
        return best

    @property
    def certainty(self) -> Numbers:
        """The probability of that class."""
        highest: Numbers = self.probabilities.max(axis=1)
        return highest

    def answered(self, threshold: float) -> npt.NDArray[np.bool_]:
        """Whether each flow has an answer; the others are unknown."""
        return (self.certainty >= threshold) & (self.certainty > 0)


def by_rule(transport: Numbers, names: Sequence[str], else_is: str = "h2") -> Classes:
    """The rule that needs no learning: UDP is h3, all else h2, or another. -1 for a version not among the names."""
    places = [names.index(name) if name in names else -1 for name in (else_is, "h3")]
    return np.where(transport == UDP, places[1], places[0])
