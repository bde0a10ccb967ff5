"""Compiled functions, cached if possible."""

from collections.abc import Callable
from typing import TypeVar

from numba import njit

Function = TypeVar("Function")


def compiled(*, parallel: bool = False) -> Callable[[Function], Function]:
    """Compile a function over arrays, without bounds checks.

    Compiled code is cached for the next process beside the package or in the user's cache. Where neither can be
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
