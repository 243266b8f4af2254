"""One way to compile: a single thread, without the interpreter's lock, kept on disk for the next start.

Parallelism comes from clients that run side by side; a single-threaded kernel gives the same bytes on any number of
workers.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

R = TypeVar("R")
A = TypeVar("A", bound=NDArray[Any])


def inner(function: Callable[..., R]) -> Callable[..., R]:
    """Compile `function` into each kernel that calls it: once with it, not once more by itself.

    >>> inner(lambda x: x + 1)(2)
    3
    """
    return cast(Callable[..., R], numba.njit(nogil=True, error_model="numpy", inline="always")(function))


def read_only(array: A) -> A:
    """Return what cannot be written through: one type for all that is only read, and nothing compiled twice.

    >>> import numpy as np
    >>> read_only(np.zeros(1)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def kernel(function: Callable[..., R]) -> Callable[..., R]:
    """Compile `function` with numba at its first call, for all later starts.

    It must be a function of a module: what refers to variables around it would be compiled again at every start. A
    division by zero raises nothing, as in numpy: a test of each divisor would keep loops from being vectorised.

    >>> kernel(lambda x: x + 1)(2)
    3
    """
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # no folder to keep it in, as in a read-only container: compile at every start
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Callable[..., R], compiled)
