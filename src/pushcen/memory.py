"""Keep freed memory in the process: a training step asks for the same few megabytes again and again."""

import ctypes
import functools
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names in glibc
_KEPT = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 64 << 20}


@functools.cache
def keep_freed_memory() -> bool:
    """Ask glibc not to give freed blocks back to the system; return whether it agreed.

    By default every block over some megabytes goes back when it is freed, and each of its pages is zeroed and mapped
    anew at the next step: a sixth of the time of a LeNet's training. Without glibc, or with any `MALLOC_...` variable
    set, nothing is changed.

    >>> keep_freed_memory() in (True, False)
    True
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(name, value) == 1 for name, value in _KEPT.items())


def give_back_freed_memory() -> bool:
    """Give all that is free now back to the system, once; return whether that was possible.

    It is for what was large and does not come again.

    >>> give_back_freed_memory() in (True, False)
    True
    """
    try:
        return bool(ctypes.CDLL("libc.so.6").malloc_trim(0))
    except (OSError, AttributeError):
        return False
