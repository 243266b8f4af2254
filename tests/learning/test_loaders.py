"""A DataLoader counts as its dataset, its collate function and its batch size; one that draws otherwise is refused."""

import logging

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from pushcen.config import load_config
from pushcen.errors import TaskError
from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work
from pushcen.runs.forecast import forecast
from tests.learning.tasks import tiny_data, tiny_model
from tests.learning.test_task import Rows

X, Y = tiny_data()
DATA = TensorDataset(X, Y)


def learner_of(train, batch=8, test=None, **task):
    training = TrainingOptions(epochs=2, batch=batch, lr=0.01)
    return Learner(Task(tiny_model(), train, test, **task), CentroidUpdate(8), training, client="client 7", seed=3)


def step(learner):
    return learner.step(Work(1, [])).payloads[0].data


LOADERS = {
    "in order": DataLoader(DATA, batch_size=8),
    "shuffled": DataLoader(DATA, batch_size=8, shuffle=True),
    "of single samples": DataLoader(Rows(X, Y), batch_size=8, shuffle=True, drop_last=True),
    "with workers": DataLoader(DATA, batch_size=8, num_workers=2),
}


@pytest.mark.parametrize("form", LOADERS)
def test_a_loader_trains_and_scores_as_its_dataset_does(form):
    loader = LOADERS[form]
    expected, learner = learner_of((X, Y), test=(X, Y)), learner_of(loader, test=loader)
    assert step(learner) == step(expected)
    assert learner.evaluate() == expected.evaluate()


def scaled(some):
    return torch.stack([x for x, _ in some]) * 2, torch.tensor([int(y) for _, y in some])


@pytest.mark.parametrize("samples", [(X, Y), DATA, Rows(X, Y)], ids=["tensors", "TensorDataset", "dataset"])
def test_collate_makes_the_batches_of_any_samples(samples):
    assert step(learner_of(samples, collate=scaled)) == step(learner_of((X * 2, Y)))


def test_the_collate_function_of_a_loader_counts_for_its_own_data_and_the_tasks_for_the_rest():
    both = learner_of(DataLoader(DATA, collate_fn=scaled), test=(X, Y))
    assert step(both) == step(expected := learner_of((X * 2, Y), test=(X, Y)))
    assert both.evaluate() == expected.evaluate()
    assert step(learner_of(DataLoader(DATA), collate=scaled)) == step(learner_of((X * 2, Y)))


def test_the_batch_size_of_a_loader_counts_where_that_of_training_is_the_usual_one():
    loader = DataLoader(DATA, batch_size=5)
    usual = TrainingOptions().batch
    assert learner_of(loader, batch=usual).steps == learner_of((X, Y), batch=5).steps == 8
    assert learner_of(loader, batch=10).steps == 4
    assert step(learner_of(loader, batch=usual)) == step(learner_of((X, Y), batch=5))


def test_a_forecast_knows_the_samples_and_the_batch_size_of_a_loader():
    config = load_config({"clients": 3, "task": {"function": "somewhere:task"}})
    found = forecast(config, lambda client, clients: Task(tiny_model(), DataLoader(DATA, batch_size=5)))
    assert (found.samples, found.steps) == ([20] * 3, [4] * 3)


def test_the_log_says_what_was_taken_of_a_loader(caplog):
    with caplog.at_level(logging.INFO, "pushcen"):
        learner_of(DataLoader(DATA, batch_size=5), batch=32)
        learner_of(DataLoader(DATA, batch_size=5), batch=16)
    assert [record.getMessage() for record in caplog.records] == [
        "the training data of client 7: took dataset, collate function and batch size, 5, out of a DataLoader",
        "the training data of client 7: took dataset and collate function out of a DataLoader; "
        "its batch size is 5, but training.batch = 16 counts",
    ]


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], Y[0])])


class Half(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return X[i], Y[i]


class OwnOrder(RandomSampler):
    """Draws as it likes."""


REFUSED = {
    "weights": (DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 20, 20)), "sampler of its own, WeightedRandom"),
    "replacement": (DataLoader(DATA, sampler=RandomSampler(DATA, replacement=True)), "sampler of its own, RandomSam"),
    "fewer": (DataLoader(DATA, sampler=RandomSampler(DATA, num_samples=5)), "sampler of its own, RandomSampler"),
    "a subset": (DataLoader(DATA, sampler=SubsetRandomSampler(range(5))), "sampler of its own, SubsetRandomSampler"),
    "the order of another": (DataLoader(DATA, sampler=SequentialSampler(Half())), "sampler of its own, Sequential"),
    "a class of its own": (DataLoader(DATA, sampler=OwnOrder(DATA)), "sampler of its own, OwnOrder"),
    "batches": (DataLoader(DATA, batch_sampler=[[0, 1], [2, 3]]), "batch_sampler of its own, list"),
    "a BatchSampler": (
        DataLoader(DATA, batch_sampler=BatchSampler(WeightedRandomSampler([1.0] * 20, 9), 3, False)),
        "batch_sampler of its own, BatchSampler",
    ),
    "no batches": (DataLoader(DATA, batch_size=None), "with batch_size=None"),
    "a stream": (DataLoader(Stream()), "of an IterableDataset"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_loader_that_draws_in_a_way_of_its_own_is_refused(form):
    loader, text = REFUSED[form]
    with pytest.raises(TaskError, match=f"the training data of client 7 is a DataLoader .*{text}.*: must be a map-sty"):
        learner_of(loader)
