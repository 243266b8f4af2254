"""A DataLoader, taken apart: its dataset, its collate function and its batch size. Clients draw the order."""

import logging
from dataclasses import dataclass
from typing import Any

from torch.utils.data import (
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from pushcen.errors import TaskError
from pushcen.learning.collation import Collate

_log = logging.getLogger("pushcen")


@dataclass(frozen=True, eq=False)
class LoaderSamples:
    """What a DataLoader was made of."""

    dataset: Any
    collate: Collate | None
    """None: samples are collated as they are without a loader."""
    batch: int


def taken_apart(loader: DataLoader[Any], what: str) -> LoaderSamples:
    """Return what a DataLoader was made of; refuse one that draws samples in a way of its own. `what` names it.

    >>> taken_apart(DataLoader([(1.0, 0), (2.0, 1)], batch_size=2, shuffle=True), "the training data of client 7").batch
    2
    >>> from torch.utils.data import WeightedRandomSampler
    >>> weighted = DataLoader([(1.0, 0), (2.0, 1)], sampler=WeightedRandomSampler([1, 2], 2))
    >>> taken_apart(weighted, "the training data of client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: the training data of client 7 is a DataLoader with a sampler of its own, Weighted...
    """
    if isinstance(loader.dataset, IterableDataset):
        why = "of an IterableDataset, which has no numbered samples"
    elif loader.batch_size is None and loader.batch_sampler is None:
        why = "with batch_size=None, whose dataset makes the batches"
    elif loader.batch_size is None:
        why = f"with a batch_sampler of its own, {type(loader.batch_sampler).__name__}"
    elif not _plain_order(loader):
        why = f"with a sampler of its own, {type(loader.sampler).__name__}"
    else:
        collate = None if loader.collate_fn is default_collate else loader.collate_fn
        return LoaderSamples(loader.dataset, collate, loader.batch_size)
    raise TaskError(
        f"{what} is a DataLoader {why}: must be a map-style dataset, or a DataLoader of one, shuffled or not; "
        "each client draws the order of its samples from its own stream"
    )


def batch_size(samples: Any, batch: int, usual: int) -> int:
    """Return a client's batch size: that of its DataLoader, if it has one and `batch` is the usual one.

    >>> loader = DataLoader([(1.0, 0), (2.0, 1)], batch_size=2)
    >>> batch_size(loader, 32, usual=32), batch_size(loader, 16, usual=32), batch_size([], 32, usual=32)
    (2, 16, 32)
    """
    if batch != usual:
        return batch
    if isinstance(samples, LoaderSamples):
        return samples.batch
    return (samples.batch_size or batch) if isinstance(samples, DataLoader) else batch


def log_loader(samples: Any, batch: int, what: str) -> None:
    """Log what was taken of a DataLoader, if the samples come from one, for batches of size `batch`."""
    if not isinstance(samples, LoaderSamples):
        return
    if samples.batch == batch:
        _log.info("%s: took dataset, collate function and batch size, %d, out of a DataLoader", what, batch)
    else:
        text = "%s: took dataset and collate function out of a DataLoader; its batch size is %d, but training.batch "
        _log.info(f"{text}= %d counts", what, samples.batch, batch)


def _plain_order(loader: DataLoader[Any]) -> bool:
    """Return whether every epoch has each sample once."""
    sampler, samples = loader.sampler, len(loader.dataset)  # type: ignore[arg-type]
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples == samples
    return type(sampler) is SequentialSampler and len(sampler) == samples
