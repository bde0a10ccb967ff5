"""Numbers as intervals that separate classes.

U. Fayyad and K. Irani, "Multi-interval discretization of continuous-valued attributes for classification learning",
1993; the same as Weka's before counting.
"""

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.trees import best_cut, entropy


def cuts(values: Numbers, classes: Classes, number: int) -> Numbers:
    """The thresholds of a feature, sorted; none where no cut pays for its description."""
    found: list[float] = []
    _split(values, classes, number, found)
    return np.array(sorted(found))


def intervals(values: Numbers, thresholds: Numbers) -> npt.NDArray[np.int64]:
    """The interval of each value; a threshold belongs to the one below it."""
    return np.searchsorted(thresholds, values, side="left")


def _split(values: Numbers, classes: Classes, number: int, found: list[float]) -> None:
    cut = best_cut(values, classes, number, 1)
    if cut is None:
        return
    low = values <= cut.threshold
    whole, *sides = (np.bincount(part, minlength=number) for part in (classes, classes[low], classes[~low]))
    kinds, of_sides = int((whole > 0).sum()), [int((side > 0).sum()) for side in sides]
    spread = [entropy([int(count) for count in part]) for part in (whole, *sides)]
    delta = np.log2(3.0**kinds - 2) - (kinds * spread[0] - of_sides[0] * spread[1] - of_sides[1] * spread[2])
    if cut.gain_bits <= (np.log2(len(values) - 1) + delta) / len(values):
        return
    found.append(cut.threshold)
    _split(values[low], classes[low], number, found)
    _split(values[~low], classes[~low], number, found)
