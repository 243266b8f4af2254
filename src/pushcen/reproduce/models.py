"""The paper's models and methods, as far as sizes and operations depend on them: nothing is trained here."""

import functools

import torch
from torch import nn

from pushcen.methods import AsyncDFedAvg, DivShare, Method, PushCen, SwiftRandom
from pushcen.models import LeNet, resnet18
from pushcen.reproduce.paper import CLASSES

RECEIVERS = 10
"""Receivers of a push in the paper (k)."""
SIDE = {"cifar10": 32, "cifar100": 32, "tiny-imagenet": 64}
CLIENTS = {"cifar10": 100, "cifar100": 50, "tiny-imagenet": 50}
IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "tiny-imagenet": 100_000}
MODEL = {"cifar10": "LeNet", "cifar100": "ResNet-18", "tiny-imagenet": "ResNet-18"}
METHODS: dict[str, Method] = {
    "async-dfedavg": AsyncDFedAvg(receivers=RECEIVERS),
    "divshare": DivShare(parts=5, receivers=2),
    "swift": SwiftRandom(receivers=RECEIVERS),
    "pushcen": PushCen(receivers=RECEIVERS),
}
"""The rows of Tables 2 and 3."""
NAMES = {"async-dfedavg": "Async-DFedAvg", "divshare": "DivShare", "swift": "SWIFT", "pushcen": "PushCen"}


@functools.cache
def build(dataset: str) -> nn.Module:
    """Make the model that the paper trains on a data set; to be looked at, not to be changed.

    >>> sum(p.numel() for p in build("cifar10").parameters())
    256830
    """
    classes = CLASSES[dataset]
    return LeNet(classes) if dataset == "cifar10" else resnet18(classes)


def train_samples(dataset: str) -> int:
    """Count the training samples of an average client: its share of the images, less the fifth it is tested on.

    >>> train_samples("cifar10"), train_samples("tiny-imagenet")
    (400, 1600)
    """
    return round(0.8 * IMAGES[dataset] / CLIENTS[dataset])


def batch(dataset: str, size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a batch with the shape of a data set's: its numbers do not matter here."""
    images = torch.randn(size, 3, SIDE[dataset], SIDE[dataset], generator=torch.Generator().manual_seed(0))
    return images, torch.arange(size) % CLASSES[dataset]
