"""Batches from whatever holds a client's samples. Tensors are gathered in one call, with no loop over samples."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from pushcen.data import ClientData
from pushcen.data.clients import gather
from pushcen.errors import TaskError
from pushcen.learning.collation import Batch, Collation, longest_text
from pushcen.learning.loaders import LoaderSamples, taken_apart
from pushcen.learning.mistakes import form_of
from pushcen.learning.noise import unseen

Samples = Any
"""Tensors or arrays `(inputs, targets)`, a `ClientData`, or any map-style dataset, or a DataLoader of one.

A dataset gives `(input, target)`, or a dict of what the model takes with `labels`. Where a model takes several inputs,
they are a dict or a tuple, of tensors or by sample.
"""
_RIGHT = "must be two tensors, (inputs, targets), or a map-style dataset of (input, target) or of dicts with labels"


def count(samples: Samples) -> int:
    """Count the samples.

    >>> count((torch.zeros(5, 2), torch.zeros(5)))
    5
    """
    if isinstance(samples, DataLoader | LoaderSamples):
        samples = samples.dataset
    return min(_lengths(samples), default=0) if isinstance(samples, tuple) else len(samples)


def prepared(samples: Samples, what: str, *, empty: bool = False) -> Samples:
    """Return the samples as the rest of this module takes them, or refuse them; `what` names them.

    Arrays become tensors, `[inputs, targets]` becomes a tuple, a DataLoader what it is made of. There must be one
    sample at least, unless `empty`.

    >>> prepared([np.zeros((3, 2)), np.arange(3)], "the training data of client 7")[1]
    tensor([0, 1, 2])
    >>> prepared(torch.zeros(3, 2), "the training data of client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: the training data of client 7 is a Tensor: must be two tensors, (inputs, targets), or ...
    """
    if isinstance(samples, list) and len(samples) == 2 and isinstance(samples[1], torch.Tensor | np.ndarray):
        samples = tuple(samples)
    if isinstance(samples, DataLoader):
        loader = taken_apart(samples, what)
        return LoaderSamples(prepared(loader.dataset, what, empty=empty), loader.collate, loader.batch)
    map_style = hasattr(samples, "__len__") and hasattr(samples, "__getitem__")
    no_rows = isinstance(samples, torch.Tensor | np.ndarray | dict | str | IterableDataset) or hasattr(samples, "iloc")
    if no_rows or not (map_style or isinstance(samples, ClientData)):
        raise TaskError(f"{what} is a {type(samples).__name__}: {_RIGHT}")
    if isinstance(samples, tuple):
        samples = _tensors(samples, what)
    check(samples, what, empty=empty)
    return samples


def gatherer(
    samples: Samples, what: str = "the data", collation: Collation | None = None
) -> Callable[[torch.Tensor], Batch]:
    """Return what makes a batch of row numbers; `collation` knows the model that it is for.

    >>> take = gatherer((torch.arange(10.0), torch.arange(10)))
    >>> take(torch.tensor([3, 1]))
    (tensor([3., 1.]), tensor([3, 1]))
    >>> take = gatherer([(1.0, 0), (2.0, 1)])        # a dataset of single samples
    >>> take(torch.tensor([1]))
    (tensor([2.], dtype=torch.float64), tensor([1]))
    """
    collation = collation or Collation(nn.Identity())
    collate = collation.collate
    if isinstance(samples, LoaderSamples):
        samples, collate = samples.dataset, samples.collate or collate
    if isinstance(samples, TensorDataset):
        *several, targets = samples.tensors
        samples = several[0] if len(several) == 1 else tuple(several), targets
    if isinstance(samples, tuple):
        pairs = samples
        if collate is None:
            return lambda rows: (taken(pairs[0], rows), taken(pairs[1], rows))
        return lambda rows: collation.batch([taken(pairs, row) for row in rows.unbind()], what, collate)
    if isinstance(samples, ClientData) and collate is None:
        return samples.__getitem__
    fetch = getattr(samples, "__getitems__", lambda rows: [samples[row] for row in rows])  # as PyTorch's loaders do
    return lambda rows: collation.batch(fetch(rows.tolist()), what, collate)


def check_lengths(samples: Samples | None, what: str, collation: Collation) -> None:
    """Refuse texts that are longer than the model takes, unless a collate function cuts them; `what` names them."""
    if samples is None or collation.longest is None or isinstance(samples, ClientData):
        return
    apart = isinstance(samples, LoaderSamples)
    number, length = longest_text(samples.dataset if apart else samples)
    if length > collation.longest:
        if (samples.collate if apart else None) is None and collation.collate is None:
            collation.check_length(length, f"sample {number} of {what}")
        gatherer(samples, what, collation)(torch.tensor([number]))


def check(samples: Samples, what: str, *, empty: bool = False) -> None:
    """Refuse what has no samples, or not as many inputs as targets; `what` names it.

    >>> check((torch.zeros(0, 2), torch.zeros(0)), "client 7's training data")
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7's training data has no sample: it needs one at least
    """
    if isinstance(samples, tuple):
        try:
            lengths = _lengths(samples)
        except TypeError:
            raise TaskError(f"{what} is {form_of(samples)}: {_RIGHT}") from None
        if len(samples) != 2 or len(set(lengths)) != 1:
            shown = f"{str(lengths[:8])[:-1]}, ...]" if len(lengths) > 8 else lengths
            raise TaskError(
                f"{what} has {len(samples)} parts, of lengths {shown}: must be two, inputs and targets, equally long"
            )
    if not empty and count(samples) == 0:
        raise TaskError(f"{what} has no sample: it needs one at least")


def _tensors(values: Any, what: str) -> Any:
    """Turn arrays into tensors, however they are nested."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "biufc" or values.dtype.char in "gG":
            raise TaskError(
                f"{what} has an array {list(values.shape)} of {values.dtype}: must be numbers, of float64 at most"
            )
        if any(stride < 0 for stride in values.strides):
            values = values.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is never written to may be read-only
            return torch.from_numpy(values.astype(values.dtype.newbyteorder("="), copy=False))
    if isinstance(values, dict):
        return {key: _tensors(value, what) for key, value in values.items()}
    return tuple(_tensors(value, what) for value in values) if isinstance(values, tuple | list) else values


def taken(tensors: Any, rows: torch.Tensor) -> Any:
    """Gather rows, of each if there are several.

    >>> taken((torch.arange(4), {"a": torch.arange(4)}), torch.tensor([2, 0]))
    (tensor([2, 0]), {'a': tensor([2, 0])})
    """
    if isinstance(tensors, dict):
        return {key: taken(value, rows) for key, value in tensors.items()}
    if isinstance(tensors, tuple | list):
        return tuple(taken(value, rows) for value in tensors)
    with unseen():
        return gather(tensors, rows)


def _lengths(tensors: Any) -> list[int]:
    """Return the lengths of all tensors, however they are nested."""
    if isinstance(tensors, dict | tuple | list):
        values = tensors.values() if isinstance(tensors, dict) else tensors
        return [length for value in values for length in _lengths(value)]
    return [len(tensors)]


def to_device(batch: Any, device: torch.device, number: torch.dtype = torch.float64) -> Any:
    """Move tensors, however they are nested in tuples, lists and dicts; what is float64 becomes a `number`.

    >>> to_device({"a": [torch.zeros(1, dtype=torch.float64)]}, torch.device("cpu"), torch.float32)
    {'a': [tensor([0.])]}
    """
    if isinstance(batch, torch.Tensor):
        kind = number if batch.dtype == torch.float64 else batch.dtype
        there = batch.device == device and batch.dtype == kind
        return batch if there else batch.to(device, kind, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device, number) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        values = [to_device(value, device, number) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return batch
