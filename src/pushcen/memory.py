"""Keep freed memory in the process: a training step asks for the same few megabytes again and again."""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def give_back_freed_blocks() -> Iterator[None]:
    """Make blocks of more than 128 kB that are asked for in this context go back to the system when they are freed.

    It is for what is large and soon freed for good, as on any thread `keep_freed_memory` would keep it.

    >>> with give_back_freed_blocks():
    ...     large = bytearray(1 << 20)
    """
    if not keep_freed_memory():
        yield
        return
    mallopt = ctypes.CDLL("libc.so.6").mallopt
    mallopt(_MMAP_THRESHOLD, 128 << 10)
    try:
        yield
    finally:
        mallopt(_MMAP_THRESHOLD, _KEPT[_MMAP_THRESHOLD])
