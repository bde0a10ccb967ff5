"""Entropy."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from marline.arrays import Numbers

Counts: TypeAlias = tuple[int, ...]
"""Rows of each class."""


def entropy(counts: npt.ArrayLike) -> float:
    """The entropy of classes, in bits; ``counts`` are the rows of each."""
    return float(entropies(np.asarray(counts, dtype=np.float64)))


def entropies(counts: Numbers) -> Numbers:
    """The entropy of each row of counts, in bits."""
    shares = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=-1))
