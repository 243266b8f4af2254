"""What pushcen is measured against: clustering as it is usually written, and training with nothing around it; and a
learner that does nothing, to measure the rest of a simulation.
"""

import threading
import time
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pushcen.codec import Schema
from pushcen.learning import Outcome, Score, Task, Work
from pushcen.measure import ACCURACY
from pushcen.memory import keep_freed_memory
from pushcen.models import LeNet

BATCH = 32


def lloyd(weights: torch.Tensor, clusters: int, generator: torch.Generator, iterations: int = 3) -> torch.Tensor:
    """Cluster with a distance matrix from a random start, as Algorithm 4 is usually written; return them decoded.

    >>> lloyd(torch.tensor([-1.0, 0.0, 1.0]), 3, torch.Generator().manual_seed(0)).shape
    torch.Size([3])
    """
    flat = weights.flatten()
    start = flat[torch.randint(flat.numel(), (clusters - 1,), generator=generator)]
    centroids = torch.cat([torch.zeros(1), start])
    for _ in range(iterations):
        nearest = (flat[:, None] - centroids[None, :]).abs().argmin(dim=1)
        for j in range(1, clusters):
            members = flat[nearest == j]
            if members.numel():
                centroids[j] = members.mean()
    centroids, order = centroids.sort()
    nearest = order.argsort()[nearest]
    return centroids[nearest].view(weights.shape)


def least_error(values: NDArray[np.floating], clusters: int) -> float:
    """Return the least mean squared error that any `clusters` centroids, one of them zero, can have.

    Exact, by dynamic programming over the sorted values: the best of a first j values with k cells, of which the one
    at zero has been used or not. Quadratic in the number of values.

    >>> least_error(np.array([-1.0, 0.1, 2.0, 2.2]), clusters=3)
    0.0075...
    """
    x = np.sort(np.asarray(values, np.float64))
    n = x.size
    s, q = np.append(0, np.cumsum(x)), np.append(0, np.cumsum(x * x))
    i, j = np.arange(n)[:, None], np.arange(1, n + 1)[None, :]
    valid = j > i
    at_zero = np.where(valid, q[j] - q[i], np.inf)  # cost of the cell that holds values i to j-1, its centroid zero
    at_mean = np.where(valid, at_zero - (s[j] - s[i]) ** 2 / np.maximum(j - i, 1), np.inf)
    without = np.append(0.0, np.full(n, np.inf))  # best cost of the first j values, the zero not used yet
    used = np.full(n + 1, np.inf)  # and used, perhaps for no value at all
    for _ in range(clusters):
        extended = np.minimum((used[:-1, None] + at_mean).min(axis=0), (without[:-1, None] + at_zero).min(axis=0))
        used = np.minimum(np.minimum(used, without), np.append(np.inf, extended))
        without[1:] = np.minimum(without[1:], (without[:-1, None] + at_mean).min(axis=0))
    return float(max(used[n], 0.0) / n)


@lru_cache(maxsize=1)
def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images and labels, the same for every client, so that they take memory only once."""
    draw = torch.Generator().manual_seed(0)
    return torch.randn(count, 3, 32, 32, generator=draw), torch.randint(10, (count,), generator=draw)


def lenet_task(steps: int) -> Task:
    """Return the task of a client whose compute event has so many steps."""
    return Task(LeNet(), samples(steps * BATCH))


class Bare:
    """Models and optimisers of so many clients, trained in turn."""

    def __init__(self, clients: int, steps: int) -> None:
        keep_freed_memory()  # as every learner does
        self._models = [LeNet() for _ in range(clients)]
        self._optimisers = [torch.optim.Adam(model.parameters(), fused=True) for model in self._models]
        self._inputs, self._targets = samples(steps * BATCH)

    def train(self, client: int) -> None:
        """Run one client's compute event: one pass over its data."""
        model, optimiser = self._models[client], self._optimisers[client]
        order = torch.randperm(len(self._targets))
        for rows in order.split(BATCH):  # type: ignore[no-untyped-call]
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(self._inputs[rows]), self._targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            float(loss.detach())

    def seconds(self, events: int, threads: int) -> float:
        """Measure `events` compute events of every client, on so many threads."""

        def work(first: int) -> None:
            torch.set_num_threads(1)
            for _ in range(events):
                for client in range(first, len(self._models), threads):
                    self.train(client)

        workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
        begin = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - begin


class Trivial:
    """A learner that merges, trains and sends nothing, at once."""

    task = Task(None, ((), ()))  # type: ignore[arg-type]
    schema = Schema(())
    steps = 10
    measures = (ACCURACY,)
    _outcome = Outcome({}, loss=0.0, steps=10, samples=0, flops=0.0, density=1.0)

    def __init__(self, client: int) -> None:
        self.client = client

    @property
    def frozen(self) -> "Trivial":
        """The learner itself: nothing is frozen."""
        return self

    def fingerprints(self) -> dict[str, str]:
        """Return nothing, as nothing is frozen."""
        return {}

    varies = False

    def sizes(self) -> dict[int, int]:
        """Return the size of its one part: 100 bytes."""
        return {0: 100}

    def fold(self, weight: int, part: int, payloads: Any) -> None:
        """Do nothing: there is nothing to merge early."""

    def take(self) -> None:
        """Do nothing."""

    def put_back(self) -> None:
        """Do nothing."""

    def step(self, work: Work, *, encode: bool = True, measure: bool = False) -> Outcome:  # noqa: ARG002
        """Return the same outcome every time."""
        return self._outcome

    def encode(self, towards: Any = (), gives: int = 0) -> dict[int, Any]:  # noqa: ARG002
        """Return no payload."""
        return {}

    def evaluate(self, samples: Any = None, *, shared: bool = False) -> Score:  # noqa: ARG002
        """Return a score of nothing."""
        return Score(0.0, 0.0, 0)
