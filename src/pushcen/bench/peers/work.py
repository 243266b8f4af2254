"""The work that is the same in every tool: a LeNet, images, one epoch in batches. Needs nothing but torch.

The scripts beside it run in environments that have no pushcen.
"""

import json
import sys
import time
from importlib.metadata import version
from types import ModuleType

import torch
from torch import nn

SAMPLES, BATCH, RATE = 128, 32, 0.01
CORES = 2
_draw = torch.Generator().manual_seed(0)
IMAGES = torch.randn(SAMPLES, 3, 32, 32, generator=_draw)  # of every client, so that they take memory only once
LABELS = torch.randint(10, (SAMPLES,), generator=_draw)


class ChannelsLast(nn.Module):
    """Lay images out as convolutions on a CPU like them."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the same images."""
        return images.contiguous(memory_format=torch.channels_last)


def lenet() -> nn.Module:
    """Return pushcen's LeNet."""
    return nn.Sequential(
        ChannelsLast(),
        *(nn.Conv2d(3, 32, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(1600, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


def train(model: nn.Module) -> None:
    """Train one epoch, plainly."""
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    for rows in torch.randperm(SAMPLES).split(BATCH):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(IMAGES[rows]), LABELS[rows]).backward()
        optimiser.step()


def quickest_threads() -> int:
    """Return with how many threads of torch a single process trains quickest here."""
    model, seconds = lenet(), {}
    for threads in range(1, CORES + 1):
        torch.set_num_threads(threads)
        train(model)  # warm up
        began = time.perf_counter()
        train(model)
        seconds[threads] = time.perf_counter() - began
    return min(seconds, key=seconds.__getitem__)


def report(updates: int, seconds: float, *packages: str) -> None:
    """Print what was measured, which has just ended, as one line of JSON."""
    versions = {package: version(package) for package in (*packages, "torch")}
    began = time.time() - seconds
    print(json.dumps({"updates": updates, "seconds": seconds, "began": began, "versions": versions}), flush=True)


def stand_in_for_torchvision() -> None:
    """Make `import torchvision` work: gossipy and p2pfl import it for data sets that nothing here uses.

    PyPI's build of it does not load beside a torch without CUDA.
    """
    for name in ("torchvision", "torchvision.datasets"):
        sys.modules[name] = ModuleType(name)
