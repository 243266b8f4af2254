"""What several benchmarks need: timing side by side, and weights to measure with.

Machines are shared and noisy, and slow down for seconds at a time: so what is compared is timed in alternation. Weights
are those of models trained a little on real images, since trained weights are not Gaussian.
"""

import statistics
import time
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import nn

from pushcen.models import LeNet, resnet18


def best_seconds(*functions: Callable[[], object], turns: int) -> list[float]:
    """Run the functions in turn, `turns` times after one for warming up; return the best time of each.

    >>> quick, slow = best_seconds(lambda: None, lambda: sum(range(10_000)), turns=3)
    >>> quick < slow
    True
    """
    best = [float("inf")] * len(functions)
    for turn in range(turns + 1):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            if turn:
                best[i] = min(best[i], time.perf_counter() - begin)
    return best


def time_ratio(one: Callable[[], object], other: Callable[[], object], turns: int) -> float:
    """Return how much longer `one` takes than `other`: the median over pairs, each timed back to back.

    What slows the machine down slows both of a pair; the best of each could be from different times.

    >>> time_ratio(lambda: sum(range(100_000)), lambda: sum(range(10_000)), turns=5) > 2
    True
    """
    seconds: dict[Callable[[], object], float] = {}
    ratios = []
    for turn in range(turns + 1):
        for function in (one, other) if turn % 2 else (other, one):
            begin = time.perf_counter()
            function()
            seconds[function] = time.perf_counter() - begin
        if turn:
            ratios.append(seconds[one] / seconds[other])
    return statistics.median(ratios)


def trained_lenet(steps: int = 60) -> nn.Module:
    """Return a LeNet after some steps on scikit-learn's digits."""
    return _trained(lambda: LeNet(10), steps)


def trained_resnet18(steps: int = 25) -> nn.Module:
    """Return a ResNet-18 for 100 classes after some steps on scikit-learn's digits."""
    return _trained(lambda: resnet18(100), steps)


def _trained(make: Callable[[], nn.Module], steps: int) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make()
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
