"""Small tasks and ready-made learners for the tests."""

import copy
from functools import cache

import torch
from sklearn.datasets import load_digits
from torch import nn

from pushcen.learning import Learner, Task, TrainingOptions
from pushcen.methods import method_named


def generator(seed):
    return torch.Generator().manual_seed(seed)


def tiny_data(seed=0, samples=20, inputs=6, classes=4):
    g = generator(seed)
    return torch.randn(samples, inputs, generator=g), torch.randint(classes, (samples,), generator=g)


def tiny_model(seed=0, inputs=6, hidden=8, classes=4):
    """A model that is smooth, so that float32 and float64 stay close together, and small, so that slow is quick."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes))


def tiny_learner(method="pushcen", seed=0, model=None, data=None, training=None, **options):
    training = training or TrainingOptions(epochs=2, batch=8, lr=0.01)
    method = method_named(method)(**options) if isinstance(method, str) else method
    task = Task(tiny_model(seed) if model is None else copy.deepcopy(model), data or tiny_data(seed))
    return Learner(task, method.update(), training, client=f"client {seed}", seed=seed)


@cache
def digits():
    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16 - 0.3, dtype=torch.float32), torch.tensor(labels)


def digits_of(client, clients, samples=64):
    """The digits of one client: skewed, mostly of two classes."""
    images, labels = digits()
    g = generator(client)
    likes = torch.where((labels == client % 10) | (labels == (client + 3) % 10), 10.0, 1.0)
    rows = torch.multinomial(likes, samples, generator=g)
    return images[rows], labels[rows]


def row(model):
    """All parameters in one row of float64."""
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])
