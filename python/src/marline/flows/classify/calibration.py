"""The calibration of probabilities: whether predictions are correct as often as predicted."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from marline.arrays import Classes, Numbers
from marline.flows.classify.decision import Decision

BINS: Final = 10
"""Of probabilities, each as wide."""

THRESHOLDS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Thresholds for which the share of flows with an answer, and of correct answers, is shown."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about one probability."""

    low: float
    high: float
    flows: int
    probability: float
    """The mean predicted probability; NaN without flows."""
    right: float
    """The share of correct answers; NaN without flows."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that are as probable as a threshold."""

    threshold: float
    answered: float
    """The share of the flows."""
    right: float
    """The share of the answers; NaN without any."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of the answers of a model."""

    brier: float
    """The Brier score: the mean squared error of the probabilities, summed over the classes; 0 is best."""
    brier_of_shares: float
    """Of the shares of the classes, given for each flow."""
    bins: tuple[Bin, ...]
    answers: tuple[Answers, ...]

    @classmethod
    def of(cls, decision: Decision, classes: Classes) -> Self:
        """Compare answers with the actual classes."""
        said, number = decision.probabilities, decision.probabilities.shape[1]
        is_of = np.eye(number)[classes]
        right, certainty = decision.classes == classes, decision.certainty
        places = np.minimum((certainty * BINS).astype(np.int64), BINS - 1)
        bins = tuple(
            Bin(
                at / BINS,
                (at + 1) / BINS,
                int((places == at).sum()),
                _mean(certainty[places == at]),
                _mean(right[places == at]),
            )
            for at in range(BINS)
        )
        answers = tuple(
            Answers(threshold, float(given.mean()), _mean(right[given]))
            for threshold in THRESHOLDS
            for given in [decision.answered(threshold)]
        )
        shares = is_of.mean(axis=0)
        return cls(_brier(said, is_of), _brier(np.broadcast_to(shares, is_of.shape), is_of), bins, answers)


def _brier(said: Numbers, is_of: Numbers) -> float:
    return float(((said - is_of) ** 2).sum(axis=1).mean())


def _mean(values: "np.ndarray") -> float:
    return float(values.mean()) if len(values) else float("nan")
