"""One way to compile: a single thread, without the interpreter's lock, kept on disk for the next start.

Parallelism comes from clients that run side by side; a single-threaded kernel gives the same bytes on any number of
workers.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

R = TypeVar("R")


def kernel(function: Callable[..., R]) -> Callable[..., R]:
    """Compile `function` with numba at its first call.

    >>> kernel(lambda x: x + 1)(2)
    3
    """
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep it in, as in a read-only container: compile at every start
        compiled = numba.njit(nogil=True)(function)
    return cast(Callable[..., R], compiled)
