"""The paper: its own numbers, from paper.toml, each with the table it stands in; its models, methods and sizes."""

import functools
import tomllib
from importlib import resources
from typing import Any

import torch
from torch import nn

from pushcen.methods import AsyncDFedAvg, DivShare, Method, PushCen, SwiftRandom
from pushcen.models import LeNet, resnet18

DATASETS = ("cifar10", "cifar100", "tiny-imagenet")
"""The paper's data sets."""
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "tiny-imagenet": "Tiny-ImageNet"}
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200}
SWAPPED = {"0.1": "1.0", "0.4": "0.4", "1.0": "0.1"}
"""Which column of Table 1 holds an alpha's numbers, if its outer columns are swapped."""
RECEIVERS = 10
"""Receivers of a push in the paper (k)."""
_SIDE = {"cifar10": 32, "cifar100": 32, "tiny-imagenet": 64}
_CLIENTS = {"cifar10": 100, "cifar100": 50, "tiny-imagenet": 50}
_IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "tiny-imagenet": 100_000}
_MODEL = {"cifar10": "LeNet", "cifar100": "ResNet-18", "tiny-imagenet": "ResNet-18"}
METHODS: dict[str, Method] = {
    "async-dfedavg": AsyncDFedAvg(receivers=RECEIVERS),
    "divshare": DivShare(parts=5, receivers=2),
    "swift": SwiftRandom(receivers=RECEIVERS),
    "pushcen": PushCen(receivers=RECEIVERS),
}
"""The rows of Tables 2 and 3."""
NAMES = {"async-dfedavg": "Async-DFedAvg", "divshare": "DivShare", "swift": "SWIFT", "pushcen": "PushCen"}


@functools.cache
def tables() -> dict[str, Any]:
    """Return all numbers, by table, data set and row.

    >>> tables()["table2"]["cifar10"]["pushcen"]
    [1.622, 1.0]
    """
    return tomllib.loads((resources.files("pushcen.reproduce") / "paper.toml").read_text("utf-8"))


def rows(table: str, dataset: str) -> dict[str, Any]:
    """Return a table's rows for a data set; none if the paper has no such table.

    >>> list(rows("table6", "cifar100")), rows("table9", "cifar100")
    (['8', '16', '32'], {})
    """
    found: dict[str, Any] = tables().get(table, {}).get(dataset, {})
    return found


def numbers(table: str, dataset: str, row: str, alpha: float | None = None) -> list[float]:
    """Return what the paper prints in a row, as a list: first the figure itself; empty if it prints nothing.

    >>> numbers("table1", "cifar10", "pushcen", alpha=0.4)
    [66.22, 7.82]
    >>> numbers("table4", "cifar10", "no-buffer"), numbers("table4", "cifar10", "no-mask")
    ([65.04], [])
    """
    found = rows(table, dataset).get(row, [])
    if isinstance(found, dict):
        found = found.get(column(alpha), [])
    return list(found) if isinstance(found, list) else [found]


def column(alpha: float | None) -> str:
    """Return the name of an alpha's column in Table 1.

    >>> column(1), column(0.4)
    ('1.0', '0.4')
    """
    return "" if alpha is None else str(float(alpha))


@functools.cache
def model(dataset: str) -> nn.Module:
    """Return the model that the paper trains on a data set; it is shared, and must not be changed.

    >>> sum(p.numel() for p in model("cifar10").parameters())
    256830
    """
    classes = CLASSES[dataset]
    return LeNet(classes) if dataset == "cifar10" else resnet18(classes)


def model_name(dataset: str) -> str:
    """Return what the appendix's tables call the model of a data set.

    >>> model_name("cifar100")
    'ResNet-18, 100 classes'
    """
    return f"{_MODEL[dataset]}, {CLASSES[dataset]} classes"


def train_samples(dataset: str) -> int:
    """Return the training samples of an average client: its share of the images, less the fifth it is tested on.

    >>> train_samples("cifar10"), train_samples("tiny-imagenet")
    (400, 1600)
    """
    return round(0.8 * _IMAGES[dataset] / _CLIENTS[dataset])


def batch(dataset: str, size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch with the shape of a data set's; its numbers do not matter here."""
    images = torch.randn(size, 3, _SIDE[dataset], _SIDE[dataset], generator=torch.Generator().manual_seed(0))
    return images, torch.arange(size) % CLASSES[dataset]
