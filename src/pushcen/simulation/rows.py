"""A learner's shared weights as one row of numbers: for the reference model, and for looking at other weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pushcen.codec import Accumulator, Payload
from pushcen.codec.clustering import flatten
from pushcen.learning import Learner
from pushcen.learning import samples as data


def row_of(learner: Learner) -> torch.Tensor:
    """Copy the shared weights into one row.

    >>> from pushcen.learning import Task
    >>> learner = Learner(Task(torch.nn.Linear(3, 2), (torch.zeros(4, 3), torch.zeros(4).long())))
    >>> len(row_of(learner))
    8
    """
    return torch.cat([flatten(tensor).cpu() for tensor in learner.schema.tensors(learner.model)])


@contextmanager
def set_to(learner: Learner, row: torch.Tensor) -> Iterator[None]:
    """Let the learner's model have the shared weights of `row` for a while; what is not shared stays its own."""
    tensors = learner.schema.tensors(learner.model)
    own = [tensor.detach().clone() for tensor in tensors]
    with torch.no_grad():
        for (entry, place), tensor in zip(learner.schema.slices, tensors, strict=True):
            tensor.copy_(row[place].view(entry.shape))
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, before in zip(tensors, own, strict=True):
                tensor.copy_(before)


def decoded(payload: Payload, learner: Learner) -> torch.Tensor:
    """Turn a message of a whole model into a row."""
    into = Accumulator.zeros(learner.schema)
    learner.add(payload, 1, into)
    return into.total.double()


def add(total: torch.Tensor, weight: float, kind: str, thing: Any, learner: Learner) -> None:
    """Add `weight` times a row, the payloads of a whole model, or a sum that is weighted already (or None)."""
    if kind == "payloads":
        thing = decoded(thing[0], learner)
    if thing is not None:
        total.add_(thing.double(), alpha=weight)


def folded(learner: Learner) -> torch.Tensor | None:
    """Give the weighted sum of what was folded and is not merged yet, the running event's too."""
    sums = [into.total.cpu().double() for into in learner.folded]
    return sum(sums[1:], sums[0]) if sums else None


def gradient(learner: Learner) -> tuple[float, torch.Tensor]:
    """Compute the loss over all training data and its gradient, with the client's own BatchNorm statistics."""
    model, task, batch = learner.model, learner.task, learner.training.batch
    gather, count = data.gatherer(task.train), data.count(task.train)
    tensors = learner.schema.tensors(model)
    model.eval()
    model.zero_grad()
    total = 0.0
    for places in torch.arange(count).split(max(batch, 256)):  # type: ignore[no-untyped-call]
        inputs, targets = learner.local.on_device(gather(places))
        loss = learner.local.loss(inputs, targets)[0] * (len(places) / count)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    row = torch.cat([flatten(torch.zeros_like(t) if t.grad is None else t.grad).cpu().double() for t in tensors])
    model.zero_grad()
    return total, row
