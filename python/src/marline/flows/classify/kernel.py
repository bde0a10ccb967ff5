"""Compiled classification by trees.

Two children of a node are neighbours, and a leaf is its own child behind a threshold that nothing exceeds, so that a
step is the same few instructions for each row: no branch depends on a row's values, and eight rows are processed at
once.
"""

import numpy as np
import numpy.typing as npt
from numba import prange

from marline.arrays import Numbers
from marline.compiled import compiled

Places = npt.NDArray[np.int32]

_AT_ONCE = 8
_BLOCK = 4096
"""Rows that one thread takes."""


@compiled(parallel=True)
def by_tree(rows: Numbers, nodes: Places, threshold: Numbers, answer: Places, depth: int) -> Places:
    """The answer of the leaf that each row reaches, by one tree; a node is its feature and its first child."""
    count = len(rows)
    found = np.empty(count, dtype=np.int32)
    for block in prange((count + _BLOCK - 1) // _BLOCK):
        end = min((block + 1) * _BLOCK, count)
        at = np.zeros(_AT_ONCE, dtype=np.int32)
        for first in range(block * _BLOCK, end, _AT_ONCE):
            width = min(_AT_ONCE, end - first)
            at[:] = 0
            for _ in range(depth):
                for lane in range(width):
                    node = at[lane]
                    at[lane] = nodes[node, 1] + (rows[first + lane, nodes[node, 0]] > threshold[node])
            for lane in range(width):
                found[first + lane] = answer[at[lane]]
    return found


@compiled(parallel=True)
def by_forest(
    rows: npt.NDArray[np.float32], nodes: Places, threshold: Numbers, roots: Places, shares: Numbers
) -> Numbers:
    """The shares of the classes in the leaves that each row reaches, averaged over all trees."""
    count, number = len(rows), shares.shape[1]
    found = np.zeros((count, number))
    for block in prange((count + _BLOCK - 1) // _BLOCK):
        first, end = block * _BLOCK, min((block + 1) * _BLOCK, count)
        # A tree of a forest fits into a processor's cache; all of them do not.
        for root in roots:
            for row in range(first, end):
                node = root
                while nodes[node, 1] != node:
                    node = nodes[node, 1] + (rows[row, nodes[node, 0]] > threshold[node])
                found[row] += shares[node]
        found[first:end] /= len(roots)
    return found
