"""Bare training: LeNet and Adam in a plain loop, with nothing around it; and the task for a simulation of the same."""

import threading
import time
from functools import lru_cache

import torch
from torch import nn

from pushcen.learning import Task
from pushcen.memory import keep_freed_memory
from pushcen.models import LeNet

BATCH = 32


@lru_cache(maxsize=1)
def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Make images and labels, the same for everybody: memory for them is taken once."""
    draw = torch.Generator().manual_seed(0)
    return torch.randn(count, 3, 32, 32, generator=draw), torch.randint(10, (count,), generator=draw)


def lenet_task(steps: int) -> Task:
    """Make the task of a client whose compute event has so many steps."""
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
