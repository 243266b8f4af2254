"""Batches from whatever holds a client's samples. Tensors are gathered in one call, with no loop over samples."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import TensorDataset, default_collate

from pushcen.data import View
from pushcen.errors import LearningError

Samples = Any
"""Tensors `(inputs, targets)`, a `View`, or any map-style dataset that gives `(input, target)`.

Where a model takes several inputs, they are a dict or a tuple, of tensors or by sample.
"""
Batch = tuple[Any, Any]


def count(samples: Samples) -> int:
    """Count the samples.

    >>> count((torch.zeros(5, 2), torch.zeros(5)))
    5
    """
    return min(_lengths(samples), default=0) if isinstance(samples, tuple) else len(samples)


def gatherer(samples: Samples) -> Callable[[torch.Tensor], Batch]:
    """Return what makes a batch of row numbers.

    >>> take = gatherer((torch.arange(10.0), torch.arange(10)))
    >>> take(torch.tensor([3, 1]))
    (tensor([3., 1.]), tensor([3, 1]))
    >>> take = gatherer([(1.0, 0), (2.0, 1)])        # a dataset of single samples
    >>> take(torch.tensor([1]))
    (tensor([2.], dtype=torch.float64), tensor([1]))
    """
    if isinstance(samples, View):
        return samples.__getitem__
    if isinstance(samples, TensorDataset):
        *several, targets = samples.tensors
        samples = several[0] if len(several) == 1 else tuple(several), targets
    if isinstance(samples, tuple):
        return lambda rows: (_take(samples[0], rows), _take(samples[1], rows))

    def collate(rows: torch.Tensor) -> Batch:
        inputs, targets = default_collate([samples[row] for row in rows.tolist()])
        return inputs, targets

    return collate


def check(samples: Samples, what: str) -> None:
    """Refuse what has no samples, or not as many inputs as targets; `what` names it.

    >>> check((torch.zeros(0, 2), torch.zeros(0)), "client 7's training data")
    Traceback (most recent call last):
    pushcen.errors.LearningError: client 7's training data has no sample: it needs one at least
    """
    if isinstance(samples, tuple) and (len(samples) != 2 or len(set(_lengths(samples))) != 1):
        raise LearningError(
            f"{what} has {len(samples)} parts, of lengths {_lengths(samples)}: "
            "must be two, inputs and targets, equally long"
        )
    if count(samples) == 0:
        raise LearningError(f"{what} has no sample: it needs one at least")


def _take(tensors: Any, rows: torch.Tensor) -> Any:
    """Gather rows, of each if there are several."""
    if isinstance(tensors, dict):
        return {key: _take(value, rows) for key, value in tensors.items()}
    return tuple(_take(value, rows) for value in tensors) if isinstance(tensors, tuple | list) else tensors[rows]


def _lengths(tensors: Any) -> list[int]:
    """Return the lengths of all tensors, however they are nested."""
    if isinstance(tensors, dict | tuple | list):
        values = tensors.values() if isinstance(tensors, dict) else tensors
        return [length for value in values for length in _lengths(value)]
    return [len(tensors)]


def to_device(batch: Any, device: torch.device) -> Any:
    """Move tensors, however they are nested in tuples, lists and dicts.

    >>> to_device({"a": [torch.zeros(1)]}, torch.device("cpu"))
    {'a': [tensor([0.])]}
    """
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
