"""Images of a data set, divided among clients, with a model by name.

The data is loaded and divided once in a process, however many clients and runs look at it.
"""

import functools
import math
import threading
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from pushcen.checks import check_choice
from pushcen.data import NAMES, Data, Scale, Split, check_labels, load, split
from pushcen.errors import DataError, ModelError, called
from pushcen.learning import Task, load_weights, metric_names
from pushcen.models import LeNet, SmallCNN, resnet18
from pushcen.tasks.augmentation import augment
from pushcen.tasks.options import DataOptions

IMAGE_MODELS = ("cnn", "lenet", "resnet18")
_USUAL = {"cifar10": "lenet", "cifar100": "resnet18", "tiny-imagenet": "resnet18"}  # as in the paper
_NAMES = "source path partition alpha per_client pool_test min_samples size scale label"
_KEYS = {name: f"data.{name}" for name in _NAMES.split()}
_loading = threading.Lock()


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
    metrics: str = ""

    def __post_init__(self) -> None:
        if not self.model:
            object.__setattr__(self, "model", _USUAL.get(self.data.source, "cnn"))
        check_choice("model", self.model, IMAGE_MODELS)

    def __call__(self, client: int, clients: int) -> Task:
        """Return the task of one client."""
        divided = self.divided(clients)
        mine = divided[client]
        tests, metrics = mine.test if len(mine.test) else None, metric_names(self.metrics) or None
        return Task(self.network(divided.data), mine.train, tests, metric=metrics, about=self._about(divided.data))

    def divided(self, clients: int) -> Split:
        """Return the data set, divided among so many clients."""
        with _loading, called(**_KEYS):
            return _divided(self.data, clients, self.seed)

    def common_test(self, clients: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the data set's global test set, which is nobody's, if it has one."""
        data = self.divided(clients).data
        return None if data.test_inputs is None or data.test_labels is None else (data.test_inputs, data.test_labels)

    def _about(self, data: Data) -> dict[str, str]:
        """Return how images became inputs, where that is not known by the data set's name."""
        about = {} if self.data.source in NAMES and not self.data.scale else {"scale": str(data.scale)}
        return about | ({"size": str(self.data.size)} if self.data.size else {})

    def network(self, data: Data) -> nn.Module:
        """Return a new model for this data."""
        with called(model="task.model", weights="task.weights"):
            model = _network(self.model, data)
            if self.weights:
                load_weights(model, self.weights)
        return augment(model, self.data.augment) if self.data.augment else model


@functools.lru_cache(maxsize=1)
def _loaded(source: str, path: str, pool_test: bool, size: int | None, scale: str | None) -> Data:
    given = None if scale is None else Scale.parse(scale)
    return load(source, path=path or None, pool_test=pool_test, size=size, scale=given)


@functools.lru_cache(maxsize=2)
def _divided(options: DataOptions, clients: int, seed: int) -> Split:
    data = _loaded(options.source, options.path, options.pool_test, options.size, options.scale)
    if options.share < 1:
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))
        rows = order[: math.ceil(options.share * len(data))].sort().values
        owners = None if data.owners is None else data.owners[rows]
        data = replace(data, inputs=data.inputs[rows], labels=data.labels[rows], owners=owners)
    partition = options.division()
    return split(data, clients, partition, test_share=options.test_share, min_samples=options.min_samples, seed=seed)


def _network(name: str, data: Data) -> nn.Module:
    shape, classes = tuple(data.inputs.shape[1:]), len(data.classes)
    if len(shape) != 3:
        raise DataError(f"{data.name}: has samples of shape {shape}, not images: data.label = 'NAME' makes it a table")
    needs = {"cnn": min(shape[1:]) >= 2, "lenet": shape == (3, 32, 32), "resnet18": shape[0] == 3}
    if not needs[name]:
        fits = [other for other in IMAGE_MODELS if needs[other]]
        raise ModelError(f"model = {name!r}: does not fit {data.name}'s images of {shape}: must be {fits}")
    check_labels(data, classes)
    if name == "cnn":
        return SmallCNN(classes, shape[0], (shape[1], shape[2]))
    return LeNet(classes) if name == "lenet" else resnet18(classes)
