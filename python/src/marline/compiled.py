"""Compiled functions, kept where there is a place for them."""

from collections.abc import Callable
from typing import TypeVar

from numba import njit

Function = TypeVar("Function")


def compiled(*, parallel: bool = False) -> Callable[[Function], Function]:
    """Compile a function over arrays, whose places it does not check.

    What is compiled is kept for the next process beside the package or in the user's cache. Where neither can be
    written, as for the user of a service without a home, each process compiles anew.
    """

    def compile_(function: Function) -> Function:
        options = {"nogil": True, "parallel": parallel, "boundscheck": False}
        try:
            found: Function = njit(cache=True, **options)(function)
        except RuntimeError:
            found = njit(**options)(function)
        return found

    return compile_
