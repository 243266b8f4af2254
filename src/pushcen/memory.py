"""Memory of many clients in one process: what training frees is kept, what building frees is not, what is equal is one.

A training step asks for the same few megabytes again and again.
"""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Fact = TypeVar("Fact")
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names in glibc
_KEPT = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 64 << 20}
_GIVEN_BACK = {_MMAP_THRESHOLD: 128 << 10, _TRIM_THRESHOLD: 128 << 10, _TOP_PAD: 0}


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
    """Make blocks of more than 128 kB go back to the system if they are asked for and freed in this context.

    It is for what is large and soon freed for good, as on any thread `keep_freed_memory` would keep it. A block that
    fits into what a thread has in reserve is taken from there, so the reserve is cut, too.

    >>> with give_back_freed_blocks():
    ...     large = bytearray(1 << 20)
    """
    if not keep_freed_memory():
        yield
        return
    libc = ctypes.CDLL("libc.so.6")
    for name, value in _GIVEN_BACK.items():
        libc.mallopt(name, value)
    try:
        yield
    finally:
        for name, value in _KEPT.items():
            libc.mallopt(name, value)
        libc.malloc_trim(0)


_facts: dict[Any, Any] = {}


def held_once(fact: Fact) -> Fact:
    """Return the first object that equals `fact`, which never changes: clients of one kind have many facts alike.

    >>> held_once(("fc.weight", 3)) is held_once(("fc.weight", 1 + 2))
    True
    """
    same: Fact = _facts.setdefault(fact, fact)
    return same
