"""How well a learner's model does on some samples."""

import math
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import default_collate

from pushcen.errors import PushcenError
from pushcen.learning import samples as data
from pushcen.learning.collation import Collation
from pushcen.learning.metrics import Metric, Scored, Tally, metrics_of, usual
from pushcen.learning.mistakes import blaming
from pushcen.learning.noise import GENERATOR
from pushcen.learning.samples import Samples
from pushcen.learning.task import Task
from pushcen.learning.work import Score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from pushcen.learning.learner import Learner

_FEW = 4  # samples that metrics are tried on
_SOME = 64  # targets that show what they are
_LABELS = ("labels", "label", "label_ids")  # what they are called in samples that are dicts


def score(learner: "Learner", samples: Samples | None, model: "nn.Module | None" = None) -> Score:
    """Score a learner's model, or that part of it; where there are no samples there is no score.

    >>> from pushcen.learning import Learner, Task
    >>> learner = Learner(Task(torch.nn.Linear(4, 2), (torch.randn(8, 4), torch.zeros(8).long())))
    >>> score(learner, learner.task.train).samples, score(learner, None).samples
    (8, 0)
    """
    nothing = Score(math.nan, math.nan, 0, (math.nan,) * (len(learner.metrics) - 1))
    if samples is None or not (count := data.count(samples)):
        return nothing
    tallies = [metric.start() for metric in learner.metrics]
    with blaming(f"{learner.client}, evaluation", learner.frozen.trained):
        total, over = _note(learner, samples, count, tallies, model)
        if not over:
            return nothing
        first, *others = [tally.value() for tally in tallies]
    kept = [tally if one.pooled else None for tally, one in zip(tallies, learner.measures, strict=True)]
    return Score(first, total / over, count, tuple(others), tuple(kept) if any(kept) else ())


def mean_loss(learner: "Learner", samples: Samples) -> float:
    """Return the mean loss of a learner's model on some samples.

    >>> from pushcen.learning import Learner, Task
    >>> learner = Learner(Task(torch.nn.Linear(4, 2), (torch.randn(8, 4), torch.zeros(8).long())))
    >>> mean_loss(learner, learner.task.train) == score(learner, learner.task.train).loss
    True
    """
    with blaming(f"{learner.client}, validation", learner.frozen.trained):
        total, over = _note(learner, samples, data.count(samples), ())
    return total / over if over else math.nan


def _note(
    learner: "Learner", samples: Samples, count: int, tallies: "Sequence[Tally]", model: "nn.Module | None" = None
) -> tuple[float, int]:
    """Show the first `count` samples to all tallies; return the sum of the loss, and over how many it is."""
    gather, total, over = learner.local.gatherer(samples, f"the test data of {learner.client}"), 0.0, 0
    learner.model.eval()
    with torch.no_grad():
        for rows in torch.split(torch.arange(count), learner.local.together):
            inputs, targets = learner.local.on_device(gather(rows))
            one = learner.local.evaluate(inputs, targets, len(rows), model)
            if one.count:
                batch = Scored(one.logits, one.targets, one.loss, one.count, learner.client)
                for tally in tallies:
                    tally.update(batch)
                total += one.loss * one.count
                over += one.count
    return total, over


def rehearse(learner: "Learner") -> None:
    """Score a few samples with the model as it is, so that a metric that cannot be computed is refused by now.

    Nothing is changed by it, no stream is drawn from. What is undefined for so few is no mistake.
    """
    if learner.task.test is None or not (count := data.count(learner.task.test)):
        return
    tallies, modes = [metric.start() for metric in learner.metrics], [one.training for one in learner.model.modules()]
    with undisturbed(), blaming(f"{learner.client}, evaluation", ()):
        _note(learner, learner.task.test, min(_FEW, count), tallies)
    for module, training in zip(learner.model.modules(), modes, strict=True):
        module.training = training
    for tally in tallies:
        try:
            tally.value()
        except Exception as error:
            if isinstance(error, PushcenError):  # few samples may be too few for a metric of the user's own
                raise


def settled(task: Task, client: str) -> tuple[Task, tuple[Metric, ...]]:
    """Return a task with loss and metric, as usual for the targets of its training data if it brings none; and metrics.

    >>> inputs, targets = torch.zeros(2, 3), torch.tensor([0.5, 1.5])
    >>> settled(Task(torch.nn.Linear(3, 1), (inputs, targets)), "client 7")[0].metric
    'rmse'
    """
    theirs = Collation(task.model).labels and not task.brings_loss  # the model may return a loss of its own
    loss, metric = None if theirs else task.loss, task.metric
    if metric is None or theirs or loss is torch.nn.functional.cross_entropy:
        loss, metric = usual(loss, metric, _some_targets(task.train))
    return replace(task, loss=loss or task.loss, metric=metric), metrics_of(metric, loss, client)


def _some_targets(samples: Samples) -> Any:
    if isinstance(samples, tuple):
        return samples[1][:_SOME] if isinstance(samples[1], torch.Tensor) else None
    with undisturbed(), suppress(Exception):  # what is wrong with a sample is told where it is trained on
        dataset: Any = getattr(samples, "dataset", samples)
        sample = dataset[0]
        found = [sample[name] for name in _LABELS if name in sample] if isinstance(sample, Mapping) else sample[-1:]
        return default_collate(list(found[:1]))


@contextmanager
def undisturbed() -> "Iterator[None]":
    """Leave PyTorch's generator as it is, whatever is drawn within this context."""
    with GENERATOR, torch.random.fork_rng(devices=[]):
        yield
