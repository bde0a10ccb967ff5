"""Types of arrays."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
"""A series, or a matrix of rows."""

Classes: TypeAlias = npt.NDArray[np.int64]
"""The class of each row."""

Folds: TypeAlias = npt.NDArray[np.int64]
"""The part of a cross-validation that each row is in."""
