"""What a client knows of its own data beside training: samples held out of it, and how its labels are distributed."""

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.utils.data import Subset

from pushcen.data import ClientData
from pushcen.errors import TaskError
from pushcen.learning import samples as data
from pushcen.learning.loaders import LoaderSamples
from pushcen.learning.samples import Samples

if TYPE_CHECKING:
    from pushcen.learning.learner import Learner


def held_out(samples: Samples, share: float, rng: np.random.Generator, what: str) -> tuple[Samples, Samples]:
    """Return what is left to train on, and a random `share` of the samples that is not; one at least of each.

    >>> inputs = torch.arange(10)
    >>> train, held = held_out((inputs, inputs), 0.3, np.random.default_rng(1), "the training data of client 7")
    >>> len(train[0]), len(held[1]), sorted([*train[1].tolist(), *held[1].tolist()]) == inputs.tolist()
    (7, 3, True)
    """
    count = data.count(samples)
    if count < 2:
        raise TaskError(f"{what} has {count} sample: it needs two at least, where one is held out for validation")
    some = held_count(count, share)
    rows = torch.from_numpy(rng.permutation(count))
    return _subset(samples, rows[some:].sort().values), _subset(samples, rows[:some].sort().values)


def held_count(count: int, share: float) -> int:
    """Return how many of so many samples are held out: none with a share of 0, else one at least, and not all.

    >>> held_count(100, 0.1), held_count(3, 0.1), held_count(2, 0.9), held_count(100, 0.0)
    (10, 1, 1, 0)
    """
    return min(max(round(share * count), 1), count - 1) if share else 0


def gain(before: float, after: float) -> float | None:
    """Return what part of a loss is gone, from -1 to 1; None where it is not finite.

    >>> gain(2.0, 1.0), gain(1.0, 2.0), gain(0.0, 0.0), gain(math.nan, 1.0)
    (0.5, -0.5, 0.0, None)
    """
    if not (math.isfinite(before) and math.isfinite(after)):
        return None
    most = max(abs(before), abs(after))
    return min(max((before - after) / most, -1.0), 1.0) if most else 0.0


def label_shares(learner: "Learner") -> dict[int, float] | None:
    """Return the share of each label in a learner's training data; None if it has none, a whole number a sample.

    >>> from pushcen.learning import Learner, Task
    >>> label_shares(Learner(Task(torch.nn.Linear(2, 3), (torch.zeros(4, 2), torch.tensor([0, 2, 2, 2])))))
    {0: 0.25, 2: 0.75}
    """
    train, found = learner.task.train, Counter[int]()
    gather = learner.local.gatherer(train, f"the training data of {learner.client}")
    for rows in torch.arange(data.count(train)).split(512):  # type: ignore[no-untyped-call]
        labels = gather(rows)[1]
        if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or labels.shape != rows.shape:
            return None
        found.update(labels.tolist())
    total = found.total()
    return {int(label): count / total for label, count in sorted(found.items())}


def label_counts(samples: Samples) -> dict[int, int] | None:
    """Return how many samples have each label, where that can be told without looking at the samples: of tensors.

    >>> label_counts((torch.zeros(4, 2), torch.tensor([0, 2, 2, 2])))
    {0: 1, 2: 3}
    """
    if isinstance(samples, ClientData):
        labels = samples.labels[samples.rows]
    elif isinstance(samples, tuple) and len(samples) == 2 and isinstance(samples[1], torch.Tensor):
        labels = samples[1]
    else:
        return None
    if labels.is_floating_point() or labels.is_complex() or labels.ndim != 1:
        return None
    found, counts = torch.unique(labels, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _subset(samples: Samples, rows: torch.Tensor) -> Samples:
    if isinstance(samples, LoaderSamples):
        return LoaderSamples(_subset(samples.dataset, rows), samples.collate, samples.batch)
    if isinstance(samples, ClientData):
        return ClientData(samples.inputs, samples.labels, samples.rows[rows])
    return data.taken(samples, rows) if isinstance(samples, tuple) else Subset(samples, rows.tolist())
