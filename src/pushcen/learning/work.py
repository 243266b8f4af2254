"""What goes into a learner's compute event and what comes out. Plain facts, with no behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from pushcen.codec import Payload

Payloads = Mapping[int, Payload]
"""What a client sends at an event, by part: 0 is the whole model; a method that cuts it numbers its parts from 1."""


class Model(NamedTuple):
    """A neighbour's model, or a part of it, and its weight: whole quanta, not normalised."""

    weight: int
    part: int
    payloads: Any
    """`Payloads`, or whatever stands for them until a learner sees them."""


class Work(NamedTuple):
    """What a compute event merges. `adopts` says that the own model weighs nothing, and training starts afresh."""

    own: int
    models: list[Model]
    adopts: bool = False


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


@dataclass(frozen=True)
class Score:
    """How well a model does on some samples."""

    metric: float
    loss: float
    samples: int


class State(NamedTuple):
    """What is saved: tensors by name, and plain data that JSON can hold."""

    tensors: dict[str, torch.Tensor]
    plain: dict[str, Any]
