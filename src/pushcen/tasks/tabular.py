"""An example that has nothing to do with images: rows of measurements, a small network with LayerNorm and dropout.

pushcen simulate --task pushcen.tasks.tabular:tumours --clients 10
"""

from functools import cache

import torch
from torch import nn

from pushcen.learning import Task


@cache
def _rows() -> tuple[torch.Tensor, torch.Tensor]:
    """Scikit-learn's breast cancer data: 569 tumours, 30 measurements each, scaled; benign or not."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    inputs = torch.tensor(data.data, dtype=torch.float32)
    return (inputs - inputs.mean(0)) / inputs.std(0), torch.tensor(data.target)


def tumours(client: int, clients: int) -> Task:
    """Return the task of one client: every `clients`-th row, a fifth of them for testing.

    >>> task = tumours(client=3, clients=10)
    >>> len(task.train[0]), len(task.test[0]), task.model(task.train[0]).shape
    (46, 11, torch.Size([46, 2]))
    """
    inputs, labels = (rows[client::clients] for rows in _rows())
    tests = len(inputs) // 5
    model = nn.Sequential(nn.Linear(30, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    return Task(model, train=(inputs[tests:], labels[tests:]), test=(inputs[:tests], labels[:tests]))
