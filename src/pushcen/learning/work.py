"""What goes into a learner's compute event and what comes out of it, and the state that is kept. Plain facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from pushcen.codec import Payload
from pushcen.learning.metrics import Tally

Payloads = Mapping[int, Payload]
"""What a client sends at an event, by part: 0 is the whole model; a method that cuts it numbers its parts from 1."""
OFFER = -1
"""The part that is no push: a model that this client offers as a reference, for others' pushes too."""


class Model(NamedTuple):
    """A neighbour's model, or a part of it, and its weight: whole quanta, not normalised."""

    weight: int
    part: int
    payloads: Any
    """`Payloads`, or whatever stands for them until a learner sees them."""


class Work(NamedTuple):
    """What a compute event merges, and how it is to be sent."""

    own: int
    models: list[Model]
    adopts: bool = False
    """Whether the own model weighs nothing, and training starts afresh."""
    gives: int = 0
    """The mass that is pushed afterwards; 0 if that is not known."""
    towards: Sequence[Any] = ()
    """References that all receivers have, as payloads, or whatever stands for them until a learner sees them."""
    offers: bool = False
    """Whether the merged model is offered as a reference."""
    senders: Sequence[str] = ()
    """Who sent each of the models, by name; empty if that is not known."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a compute event made."""

    payloads: Payloads
    loss: float
    """The mean training loss; not a number where nothing was trained."""
    steps: int
    samples: int
    flops: float
    density: float
    """The share of clustered weights that were trained, and not held at zero."""
    drift: float | None = None
    """How far training moved the weights (Delta in the paper); only if it was measured."""
    distortion: float | None = None
    """How far what was sent is from the weights (epsilon_c in the paper); only if it was measured."""
    failure: str = ""
    """Why the event failed, if it did; the learner is then as it was before it."""
    trains: bool = True
    """Whether the learner still trains, or has given up after too many failures."""
    gain: float | None = None
    """What part of the loss on held-out samples merging has taken away, from -1 to 1; None if that was not measured."""


@dataclass(frozen=True)
class Score:
    """How well a model does on some samples."""

    metric: float
    """By the task's first metric; not a number where that is undefined."""
    loss: float
    samples: int
    others: tuple[float, ...] = ()
    """By its other metrics, in their order."""
    tallies: tuple[Tally | None, ...] = field(default=(), compare=False, repr=False)
    """What pools it with other clients' scores, for each metric that is no mean over samples."""

    @property
    def values(self) -> tuple[float, ...]:
        """By all metrics."""
        return (self.metric, *self.others)


class State(NamedTuple):
    """What is saved: tensors by name, and plain data that JSON can hold."""

    tensors: dict[str, torch.Tensor]
    plain: dict[str, Any]


def named(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Put a prefix before every name.

    >>> list(named("model", {"fc.weight": torch.zeros(1)}))
    ['model.fc.weight']
    """
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def part_of(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Take out what `named` put in.

    >>> list(part_of("model", {"model.fc.weight": torch.zeros(1), "other": torch.zeros(1)}))
    ['fc.weight']
    """
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
