"""How well a learner's model does on some samples."""

import math
from typing import TYPE_CHECKING

import torch

from pushcen.learning import samples as data
from pushcen.learning.mistakes import blaming
from pushcen.learning.samples import Samples
from pushcen.learning.task import total_of
from pushcen.learning.work import Score

if TYPE_CHECKING:
    from pushcen.learning.learner import Learner


def score(learner: "Learner", samples: Samples | None) -> Score:
    """Score a learner's model; where there are no samples there is no score.

    >>> from pushcen.learning import Learner, Task
    >>> learner = Learner(Task(torch.nn.Linear(4, 2), (torch.randn(8, 4), torch.zeros(8).long())))
    >>> score(learner, learner.task.train).samples, score(learner, None).samples
    (8, 0)
    """
    if samples is None or not (count := data.count(samples)):
        return Score(math.nan, math.nan, 0)
    gather = learner.local.gatherer(samples, f"the test data of {learner.client}")
    metric, loss, counted = 0.0, 0.0, 0
    learner.model.eval()
    with torch.no_grad(), blaming(f"{learner.client}, evaluation", learner.frozen.trained):
        for rows in torch.split(torch.arange(count), learner.local.together):
            inputs, targets = learner.local.on_device(gather(rows))
            one = learner.local.evaluate(inputs, targets, len(rows))
            if one.count:
                metric += total_of(learner.task.metric(one.logits, one.targets), one.count, learner.client)
                loss += one.loss * one.count
                counted += one.count
    return Score(metric / counted, loss / counted, count) if counted else Score(math.nan, math.nan, 0)
