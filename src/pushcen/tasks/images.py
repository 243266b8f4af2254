"""Images of a data set, divided among clients, with a model by name.

The data is loaded and divided once in a process, however many clients and runs look at it.
"""

import functools
import math
import threading
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from pushcen.checks import check_choice, check_count, check_number
from pushcen.data import Data, Split, check_labels, load, partition_named, split
from pushcen.errors import DataError, ModelError, called
from pushcen.learning import Task, load_weights
from pushcen.models import LeNet, SmallCNN, resnet18

MODELS = ("cnn", "lenet", "resnet18")
_USUAL = {"cifar10": "lenet", "cifar100": "resnet18", "tiny-imagenet": "resnet18"}  # as in the paper
_KEYS = {
    name: f"data.{name}" for name in ("source", "path", "partition", "alpha", "per_client", "pool_test", "min_samples")
}
_loading = threading.Lock()


@dataclass(frozen=True)
class DataOptions:
    """Which data, and who gets what of it: the section `data` of a config.

    >>> DataOptions(partition="iid", alpha=0.1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: alpha = 0.1: partition iid has no such option
    """

    source: str = "digits"
    """A name (digits, mnist, cifar10, ...), or a file or folder."""
    path: str = ""
    """Where the files of a named data set are, if not in the cache folder."""
    partition: str = "dirichlet"
    """dirichlet, iid, shards, pathological or natural."""
    alpha: float | None = None
    """dirichlet: the smaller, the more skewed [0.4]."""
    per_client: int | None = None
    """shards, pathological: how many a client [2]."""
    share: float = 1.0
    """Which share of the samples to use; the seed decides which are left out."""
    pool_test: bool = False
    """Whether clients share the global test set, too."""
    test_share: float = 0.2
    """Which share of its samples each client keeps for testing."""
    min_samples: int = 2
    """The fewest samples a client may have."""

    def __post_init__(self) -> None:
        chosen = partition_named(self.partition, alpha=self.alpha, per_client=self.per_client)
        for name in ("alpha", "per_client"):  # resolved: what the partition has, and nothing that it has not
            object.__setattr__(self, name, getattr(chosen, name, None))
        check_number("share", self.share, 0, 1, above=True)
        check_number("test_share", self.test_share, 0, 1, below=True)
        check_count("min_samples", self.min_samples, 1)


@dataclass(frozen=True)
class ImageTask:
    """A task function: client number `client` of `clients` gets its part of the data, and a model of its own.

    `weights` is a file to start from (safetensors, or a state dict of PyTorch); without it the model starts from
    what PyTorch draws.
    """

    data: DataOptions = field(default_factory=DataOptions)
    model: str = ""
    weights: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.model:
            object.__setattr__(self, "model", _USUAL.get(self.data.source, "cnn"))
        check_choice("model", self.model, MODELS)

    def __call__(self, client: int, clients: int) -> Task:
        """Return the task of one client."""
        divided = self.divided(clients)
        mine = divided[client]
        return Task(self.network(divided.data), mine.train, mine.test if len(mine.test) else None)

    def divided(self, clients: int) -> Split:
        """Return the data set, divided among so many clients."""
        with _loading, called(**_KEYS):
            return _divided(self.data, clients, self.seed)

    def common_test(self, clients: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the data set's global test set, which is nobody's, if it has one."""
        data = self.divided(clients).data
        return None if data.test_inputs is None or data.test_labels is None else (data.test_inputs, data.test_labels)

    def network(self, data: Data) -> nn.Module:
        """Return a new model for this data."""
        with called(model="task.model", weights="task.weights"):
            model = _network(self.model, data)
            if self.weights:
                load_weights(model, self.weights)
        return model


@functools.lru_cache(maxsize=1)
def _loaded(source: str, path: str, pool_test: bool) -> Data:
    return load(source, path=path or None, pool_test=pool_test)


@functools.lru_cache(maxsize=2)
def _divided(options: DataOptions, clients: int, seed: int) -> Split:
    data = _loaded(options.source, options.path, options.pool_test)
    if options.share < 1:
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
        rows = order[: math.ceil(options.share * len(data))].sort().values
        owners = None if data.owners is None else data.owners[rows]
        data = replace(data, inputs=data.inputs[rows], labels=data.labels[rows], owners=owners)
    partition = partition_named(options.partition, alpha=options.alpha, per_client=options.per_client)
    return split(data, clients, partition, test_share=options.test_share, min_samples=options.min_samples, seed=seed)


def _network(name: str, data: Data) -> nn.Module:
    shape, classes = tuple(data.inputs.shape[1:]), len(data.classes)
    if len(shape) != 3:
        raise DataError(f"{data.name}: has samples of shape {shape}, not images; use a task function of your own")
    needs = {"cnn": min(shape[1:]) >= 2, "lenet": shape == (3, 32, 32), "resnet18": shape[0] == 3}
    if not needs[name]:
        fits = [other for other in MODELS if needs[other]]
        raise ModelError(f"model = {name!r}: does not fit {data.name}'s images of {shape}: must be {fits}")
    check_labels(data, classes)
    if name == "cnn":
        return SmallCNN(classes, shape[0], (shape[1], shape[2]))
    return LeNet(classes) if name == "lenet" else resnet18(classes)
