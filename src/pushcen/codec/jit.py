"""One way to compile: a single thread, without the interpreter's lock, kept on disk for the next start.

Parallelism comes from clients that run side by side; a single-threaded kernel gives the same bytes on any number of
workers.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

R = TypeVar("R")


def kernel(function: Callable[..., R]) -> Callable[..., R]:
    """Compile `function` with numba at its first call."""
    return cast(Callable[..., R], numba.njit(nogil=True, cache=True)(function))
