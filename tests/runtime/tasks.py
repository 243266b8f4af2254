"""Task functions for peers in tests: `tests.runtime.tasks:digits`."""

import torch

from pushcen.data import load, partition_named, split
from pushcen.learning import Task
from pushcen.models import LeNet, SmallCNN


def digits(client, clients):
    mine = split(load("digits"), clients, partition_named("dirichlet", alpha=0.4), seed=0)[client]
    return Task(SmallCNN(), mine.train, mine.test)


def tiny(client, clients):
    """Two classes that a line tells apart: trains in a millisecond."""
    rng = torch.Generator().manual_seed(client)
    inputs = torch.randn(96, 8, generator=rng)
    targets = (inputs[:, 0] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    return Task(model, (inputs[:64], targets[:64]), (inputs[64:], targets[64:]))


def lenet(client, clients):
    """Large messages, next to no training."""
    return Task(LeNet(10), (torch.zeros(2, 3, 32, 32), torch.tensor([0, 1])))


def frozen(client, clients):
    """The first layer does not train, and client 1 has another than all others."""
    made = tiny(client, clients)
    made.model[0].requires_grad_(False)
    if client == 1:
        made.model[0].bias.data += 1e-6
    return made


def numbers(client, clients):
    """A regression, by several metrics."""
    rng = torch.Generator().manual_seed(client)
    inputs = torch.randn(96, 8, generator=rng)
    targets = inputs[:, 0] - inputs[:, 1]
    model = torch.nn.Linear(8, 1)
    metric = ["rmse", "mae", "loss"]
    return Task(model, (inputs[:64], targets[:64]), (inputs[64:], targets[64:]), metric=metric)
