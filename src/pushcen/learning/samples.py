"""Batches from whatever holds a client's samples. Tensors are gathered in one call, with no loop over samples."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import TensorDataset, default_collate

from pushcen.data import View
from pushcen.errors import LearningError

Samples = Any
"""Tensors `(inputs, targets)`, a `View`, or any map-style dataset that gives `(input, target)`."""
Batch = tuple[Any, Any]


def count(samples: Samples) -> int:
    """Count the samples.

    >>> count((torch.zeros(5, 2), torch.zeros(5)))
    5
    """
    return len(samples[0]) if isinstance(samples, tuple) else len(samples)


def gatherer(samples: Samples) -> Callable[[torch.Tensor], Batch]:
    """Return what makes a batch of row numbers.

    >>> take = gatherer((torch.arange(10.0), torch.arange(10)))
    >>> take(torch.tensor([3, 1]))
    (tensor([3., 1.]), tensor([3, 1]))
    >>> take = gatherer([(1.0, 0), (2.0, 1)])        # a dataset of single samples
    >>> take(torch.tensor([1]))
    (tensor([2.], dtype=torch.float64), tensor([1]))
    """
    if isinstance(samples, TensorDataset):
        samples = samples.tensors
    if isinstance(samples, View):
        return samples.__getitem__
    if isinstance(samples, tuple):
        inputs, targets = samples
        return lambda rows: (inputs[rows], targets[rows])

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
    if isinstance(samples, tuple) and (len(samples) != 2 or len(samples[0]) != len(samples[1])):
        lengths = [len(part) for part in samples]
        raise LearningError(f"{what} has tensors of lengths {lengths}: must be two, inputs and targets, equally long")
    if count(samples) == 0:
        raise LearningError(f"{what} has no sample: it needs one at least")


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
