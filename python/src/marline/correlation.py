"""The correlation of two series."""

import numpy as np

from marline.arrays import Numbers


def rank_correlation(first: Numbers, second: Numbers) -> float | None:
    """Spearman's rank correlation, from -1 to 1; None if either series is constant.

    1 if one never falls where the other rises, regardless of the shape of the curve.
    """
    ranks = [_ranks(series) - (len(series) - 1) / 2 for series in (first, second)]
    spread = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum()) / spread if spread > 0 else None


def _ranks(series: Numbers) -> Numbers:
    """The rank of each value, from 0; equal values share the mean of their ranks."""
    _, which, counts = np.unique(series, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts + 1) / 2)[which])
