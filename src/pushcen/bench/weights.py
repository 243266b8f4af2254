"""Weights to measure with: models trained a little on real images, since trained weights are not Gaussian."""

import torch
from sklearn.datasets import load_digits
from torch import nn

from pushcen.models import LeNet, resnet18


def trained_lenet(steps: int = 60) -> nn.Module:
    """Return a LeNet after some steps on scikit-learn's digits."""
    return _trained(lambda: LeNet(10), steps)


def trained_resnet18(steps: int = 25) -> nn.Module:
    """Return a ResNet-18 for 100 classes after some steps on scikit-learn's digits."""
    return _trained(lambda: resnet18(100), steps)


def _trained(make, steps: int) -> nn.Module:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: nn.Module = make()
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().div(8).sub(1)
    images = nn.functional.interpolate(images[:, None], size=32, mode="bilinear").expand(-1, 3, -1, -1)
    labels = torch.from_numpy(digits.target).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        batch = torch.randint(len(images), (32,), generator=generator)
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return model.eval()
