"""Burstiness of packets."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Dispersion:
    """The index of dispersion for intervals.

    Of sums of ``window`` intervals in a row, the variance over ``window`` times the squared mean of an interval. 0 for
    equal intervals, 1 for a Poisson process, more for bursts.

    R. Gusella, "Characterizing the variability of arrival processes with indexes of dispersion", 1991.
    """

    window: int = 1
    """Intervals in a sum, at least 1."""

    overlapping: bool = True
    """Whether sums overlap: one begins with each interval."""

    of_sample: bool = False
    """Whether the variance is that of a sample (divided by one less); otherwise of a population."""

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"a sum has at least one interval, not {self.window}")

    def of(self, intervals: npt.ArrayLike) -> float | None:
        """The index; None for fewer than two sums, or intervals without duration."""
        values = np.asarray(intervals, dtype=np.float64)
        if values.size < self.window + 1:
            return None
        sums = np.lib.stride_tricks.sliding_window_view(values, self.window).sum(axis=1)
        sums = sums if self.overlapping else sums[:: self.window]
        squared = self.window * float(values.mean()) ** 2
        if sums.size < 2 or squared <= 0.0:
            return None
        return float(sums.var(ddof=int(self.of_sample))) / squared
