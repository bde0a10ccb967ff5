"""Classes of throughput."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from marline.arrays import Classes, Numbers
from marline.errors import TooManyClassesError
from marline.limits import MAX_CLASSES


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Throughputs in classes of equal width: ``t0`` from 0 to 10 Mbit/s, ``t10`` from 10 to 20 (section 6.2.2)."""

    names: tuple[str, ...]
    """The classes that occur, from the slowest."""
    classes: Classes
    """The class of each row, as its index in the names."""

    @classmethod
    def of(cls, throughputs_mbps: Numbers, width_mbps: float) -> Self:
        """Raises :class:`TooManyClassesError`."""
        steps, classes = np.unique(np.floor(throughputs_mbps / width_mbps), return_inverse=True)
        if len(steps) > MAX_CLASSES:
            raise TooManyClassesError(len(steps), MAX_CLASSES)
        return cls(tuple(f"t{step * width_mbps:g}" for step in steps), classes.astype(np.int64))

    def of_rows(self, used: npt.NDArray[np.bool_]) -> Self:
        """Those of some rows, with the classes that occur among them."""
        occur, classes = np.unique(self.classes[used], return_inverse=True)
        return type(self)(tuple(self.names[at] for at in occur), classes.astype(np.int64))

    @property
    def counts(self) -> tuple[int, ...]:
        """Rows of each class."""
        return tuple(int(count) for count in np.bincount(self.classes, minlength=len(self.names)))
