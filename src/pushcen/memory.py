"""Memory of many clients in one process: what training frees is kept, what building frees is not, what is equal is one.

A training step asks for the same few megabytes again and again.
"""

import ctypes
import functools
import itertools
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

Fact = TypeVar("Fact")
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names in glibc
_KEPT = {_MMAP_THRESHOLD: 1 << 30, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 64 << 20}
_LINE = 16  # numbers of a cache line: PyTorch's own blocks begin with one, too
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


def give_back_free_pages() -> None:
    """Give all pages back to the system in which nothing is in use: once in a while, as training wants them again.

    >>> give_back_free_pages()
    """
    if keep_freed_memory():
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def zeros_apart(size: int, device: torch.device) -> torch.Tensor:
    """Return a row of zeros whose memory is its own, and not between what training asks for and frees.

    It is for what a client keeps from one event to the next. On other devices, and without glibc, it is any memory. All
    pages are written at once: one that is read first is mapped as the page of zeros that all share, and again when it
    is written, for which the system interrupts every other thread.

    >>> zeros_apart(3, torch.device("cpu"))
    tensor([0., 0., 0.])
    """
    if device.type != "cpu" or 4 * size < mmap.PAGESIZE or not keep_freed_memory():
        return torch.zeros(size, device=device)
    try:
        pages = mmap.mmap(-1, 4 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # a process may have some 65,000 of these
        return torch.zeros(size, device=device)
    return torch.frombuffer(pages, dtype=torch.float32).zero_()


def move_apart(tensors: Sequence[torch.Tensor]) -> None:
    """Move the numbers of tensors into one block apart, in which they lie close together; leave what lies there.

    Single numbers come first, a line of the cache each: one operation reaches all of them.

    >>> moments = [torch.ones(600, 2), torch.ones(3)]
    >>> move_apart(moments)
    >>> moments[1], moments[0].untyped_storage().nbytes() >= 4 * 1203
    (tensor([1., 1., 1.]), True)
    """
    cpu = torch.device("cpu")
    plain = [one for one in tensors if one.dtype == torch.float32 and one.device == cpu and one.is_contiguous()]
    plain.sort(key=lambda one: one.numel() > 1)
    largest = max(plain, key=torch.numel, default=None)
    if largest is None or len(plain) < 2 or largest.untyped_storage().nbytes() > largest.nbytes:
        return
    places = [0, *itertools.accumulate(-(-one.numel() // _LINE) * _LINE for one in plain)]
    block = zeros_apart(places[-1], cpu)
    for begin, one in zip(places[:-1], plain, strict=True):
        part = block[begin : begin + one.numel()].view(one.shape)
        one.data = part.copy_(one.detach())


_facts: dict[Any, Any] = {}


def held_once(fact: Fact) -> Fact:
    """Return the first object that equals `fact`, which never changes: clients of one kind have many facts alike.

    >>> held_once(("fc.weight", 3)) is held_once(("fc.weight", 1 + 2))
    True
    """
    same: Fact = _facts.setdefault(fact, fact)
    return same
