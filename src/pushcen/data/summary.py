"""Who got what, in numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pushcen.data.clients import ClientShare, Split


@dataclass(frozen=True)
class Summary:
    """One client's part of the data."""

    client: int
    train: int
    test: int
    classes: int
    largest: str  # the name of its most frequent class
    largest_share: float

    @property
    def samples(self) -> int:
        """Training and test samples together."""
        return self.train + self.test


def count(split: Split) -> NDArray[np.int64]:
    """Return how many samples of each class each client has, [clients, classes].

    >>> from pushcen.data import Iid, load, split
    >>> count(split(load("digits"), 3, Iid())).sum(axis=1).tolist()
    [599, 599, 599]
    """
    return np.stack([_count(client, len(split.data.classes)) for client in split])


def summarise(split: Split) -> list[Summary]:
    """Return what each client has, in a line each.

    >>> from pushcen.data import Shards, load, split
    >>> first, *_ = summarise(split(load("digits"), 10, Shards(per_client=2)))
    >>> first.samples, first.train, first.test
    (177, 142, 35)
    """
    return [
        Summary(
            client.client,
            len(client.train),
            len(client.test),
            int((row > 0).sum()),
            split.data.classes[int(row.argmax())],
            float(row.max() / row.sum()),
        )
        for client, row in zip(split, count(split), strict=True)
    ]


def _count(client: ClientShare, classes: int) -> NDArray[np.int64]:
    rows = np.concatenate((client.train.rows.numpy(), client.test.rows.numpy()))
    return np.bincount(client.train.labels.numpy()[rows], minlength=classes)
