"""Errors in what the user brought, told in one line: what was raised, where, and what it was given."""

import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from pushcen.errors import DivergenceError, PushcenError, TaskError

_OURS = str(Path(__file__).parents[1])
_HINTS = {
    "more than 1 value per channel": "BatchNorm needs two samples a batch: data.min_samples, or another norm",
    "does not require grad": "the loss must depend on what trains, and not be detached from it",
    "out of memory": "a smaller training.batch may help",
    "index out of range in self": "an embedding has no row of that number: a token that the model does not know, say",
}


def told(error: BaseException) -> str:
    """Return what was raised, in which line of the user's own code if it was there, and what may help.

    >>> told(KeyError("age"))
    "KeyError: 'age'"
    """
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]:.300}" if lines else type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((_OURS, "<")) and "site-packages" not in frame.filename:
            text += f" ({Path(frame.filename).name}, line {frame.lineno})"
            break
    return text + "".join(f"; {hint}" for sign, hint in _HINTS.items() if sign in str(error))


class blaming:  # noqa: N801  # written as a function: it is entered at every step, and a generator takes longer
    """Raises what the user's own code raises as an error that names `where`.

    On weights that are not finite, or a batch with NaN, training has diverged.

    >>> with blaming("client 7, step 3", weights=[]):
    ...     {}["age"]
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7, step 3: KeyError: 'age'...
    """

    __slots__ = ("_batch", "_weights", "_where")

    def __init__(self, where: str, weights: Iterable[torch.Tensor], batch: Any = None) -> None:
        self._where, self._weights, self._batch = where, weights, batch

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise what was raised in between under its own name."""
        if not isinstance(error, Exception) or isinstance(error, PushcenError):
            return
        text = f"{self._where}: {told(error)}"
        if not all_finite(self._weights):
            raise DivergenceError(f"{text}; weights are not finite") from error
        if has_nan(self._batch):
            raise DivergenceError(f"{text}; the batch has NaN") from error
        raise TaskError(text) from error


def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Return whether there is neither NaN nor an infinite value.

    >>> all_finite([torch.zeros(1)]), all_finite([torch.zeros(1), torch.tensor(float("inf"))])
    (True, False)
    """
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def has_nan(thing: Any) -> bool:
    """Return whether there is NaN in a batch, however it is nested. Infinite values may be meant, in masks.

    >>> has_nan({"a": [torch.zeros(1), 1]}), has_nan((torch.tensor([0, float("nan")]),))
    (False, True)
    """
    if isinstance(thing, dict | tuple | list):
        return any(map(has_nan, thing.values() if isinstance(thing, dict) else thing))
    return isinstance(thing, torch.Tensor) and bool(thing.isnan().any())


def form_of(thing: Any) -> str:
    """Describe a sample, a batch or an output: shapes and types, however they are nested.

    >>> form_of(({"ids": torch.zeros(4, 2)}, [1, "a"]))
    '({ids: [4, 2] float32}, [int, str])'
    """
    if isinstance(thing, torch.Tensor):
        return f"{list(thing.shape)} {str(thing.dtype).removeprefix('torch.')}"
    if isinstance(thing, dict):
        return "{" + ", ".join(f"{key}: {form_of(value)}" for key, value in list(thing.items())[:8]) + "}"
    if isinstance(thing, tuple | list):
        inner = ", ".join(map(form_of, thing[:8])) + (", ..." if len(thing) > 8 else "")
        inner = f"{inner[:120]} ..." if len(inner) > 120 else inner
        return f"({inner})" if isinstance(thing, tuple) else f"[{inner}]"
    return type(thing).__name__
