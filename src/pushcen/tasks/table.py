"""Rows of a table, divided among clients, with a small network: a classifier, or a regression."""

import functools
import logging
import threading
from dataclasses import dataclass

import torch

from pushcen.checks import check_choice
from pushcen.data import Data, RawTable, Split, in_words, read_table, split_table
from pushcen.errors import called
from pushcen.learning import Task, load_weights, metric_names
from pushcen.models import MLP
from pushcen.tasks.options import DataOptions

TABLE_MODELS = ("mlp",)
_NAMES = (
    "source",
    "partition",
    "alpha",
    "per_client",
    "pool_test",
    "min_samples",
    "label",
    "owner",
    "target",
    "columns",
)
_KEYS = {name: f"data.{name}" for name in _NAMES}
_loading = threading.Lock()


@dataclass(frozen=True)
class SquaredError:
    """The mean squared error in units of a deviation, so that any target's gradients have one size; a loss.

    >>> SquaredError(deviation=10.0)(torch.tensor([180.0]), torch.tensor([170.0]))
    tensor(1.)
    """

    deviation: float

    def __call__(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean over the batch."""
        return ((outputs - targets) / self.deviation).square().mean()


@dataclass(frozen=True)
class TableTask:
    """A task function: client number `client` of `clients` gets its rows of a table, and a model of its own."""

    data: DataOptions
    model: str = "mlp"
    weights: str = ""
    seed: int = 0
    metrics: str = ""

    def __post_init__(self) -> None:
        if not self.model:
            object.__setattr__(self, "model", "mlp")
        check_choice("model", self.model, TABLE_MODELS)

    def __call__(self, client: int, clients: int) -> Task:
        """Return the task of one client."""
        divided = self.divided(clients)
        mine, data = divided[client], divided.data
        assert data.columns is not None
        tests = mine.test if len(mine.test) else None
        task = Task(self.network(data), mine.train, tests, about=data.columns.about())
        if not data.classes:
            deviation = data.columns.target.deviation
            task.loss, task.metric = SquaredError(deviation), ["rmse", "r2"]
        task.metric = metric_names(self.metrics) or task.metric
        return task

    def divided(self, clients: int | None) -> Split:
        """Return the table, divided among so many clients, or among its owners."""
        with _loading, called(**_KEYS):
            return _divided(self.data, clients, self.seed)

    def owners(self) -> int:
        """Return how many owners its rows have."""
        with _loading, called(**_KEYS):
            table = _read(self.data)
            return len(set(table.sheet.texts(table.owner).tolist()))

    def common_test(self, clients: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the table's global test set, which is nobody's, if it has one."""
        data = self.divided(clients).data
        return None if data.test_inputs is None or data.test_labels is None else (data.test_inputs, data.test_labels)

    def network(self, data: Data) -> MLP:
        """Return a new model for this data."""
        assert data.columns is not None
        columns = data.columns
        target, embedded = columns.target, columns.embedded
        numbers = columns.inputs - len(embedded)
        with called(weights="task.weights"):
            model = MLP(numbers, embedded, len(target.classes), mean=target.mean, deviation=target.deviation)
            if self.weights:
                load_weights(model, self.weights)
        return model

    def in_words(self, clients: int | None) -> str:
        """Return what is learnt from what, in a sentence."""
        return _in_words(self.divided(clients).data, self.data)


@functools.lru_cache(maxsize=1)
def _read(options: DataOptions) -> RawTable:
    return read_table(
        options.source,
        options.label or "",
        owner=options.owner or "",
        target=options.target or "",
        columns=options.columns or "",
        pool_test=options.pool_test,
    )


@functools.lru_cache(maxsize=2)
def _divided(options: DataOptions, clients: int | None, seed: int) -> Split:
    divided = split_table(
        _read(options),
        clients,
        options.division(),
        share=options.share,
        test_share=options.test_share,
        min_samples=options.min_samples,
        seed=seed,
    )
    logging.getLogger("pushcen").info(_in_words(divided.data, options))
    return divided


def _in_words(data: Data, options: DataOptions) -> str:
    assert data.columns is not None
    by = f"by {options.columns}" if options.columns else "by all training rows"
    return f"{data.name}: {len(data):,} rows; {in_words(data.columns)}; scaled {by}"
