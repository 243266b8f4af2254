"""What a simulation asks of a learner that works elsewhere, and later: each job is a small class that runs itself.

A task is a list of jobs for one client's learner, and a list of inputs: what other tasks made, in the order in which
the jobs use them. Jobs travel to the actors of a cluster, so they hold plain values only.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pushcen.codec import Schema, payload_size
from pushcen.learning import (
    OFFER,
    OFFERED,
    Learner,
    Model,
    Outcome,
    Score,
    State,
    Work,
    label_counts,
    label_shares,
    rows,
)
from pushcen.learning import samples as data
from pushcen.measure import ACCURACY, Measure

if TYPE_CHECKING:
    from pushcen.simulation.executors.host import Host

_new = tuple.__new__  # makes named tuples at a third of the price of calling their class
Result = tuple[Any, Any]
"""The facts of a job, small, for the simulation; and its product, large, for other jobs."""


class Job:
    """Something to do with the learner of one client, `host.learners[client]`.

    `inputs` yields what other tasks made; a job takes from it what it needs. What it returns are facts, which come to
    the simulation, and a product, which stays where it was made until another job needs it.
    """

    __slots__ = ()

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Do it; return its facts and its product."""
        raise NotImplementedError


class Facts(NamedTuple):
    """What the simulation must know of a learner before it works."""

    steps: int
    """Optimiser steps of a compute event."""
    sizes: dict[int, int]
    """Bytes of each part's message."""
    samples: int
    parameters: int
    """How many numbers are shared."""
    schema: Schema
    frozen: dict[str, str]
    """A fingerprint of each parameter that does not train."""
    reference_size: int
    """Bytes of a model that is offered as a reference."""
    measures: tuple[Measure, ...] = (ACCURACY,)
    """What it is measured by, above all by the first."""
    labels: dict[int, float] | None = None
    """The share of each label in its training data, if it was asked for and there are labels."""
    varies: bool = False
    """Whether `sizes` are only the most that a message has."""
    counts: dict[int, int] | None = None
    """How many of its training samples have each label, where that is known without looking at all of them."""


@dataclass(frozen=True, slots=True)
class Build(Job):
    """Makes the learner; with `labels`, also looks through its training data for these."""

    labels: bool = False

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> tuple[Facts, None]:  # noqa: ARG002
        """Return what the simulation must know of the learner."""
        learner = host.build(client)
        samples, schema = data.count(learner.task.train), learner.schema
        frozen, offered = learner.frozen.fingerprints(), payload_size(schema, OFFERED)
        sizes, measures = learner.sizes(), learner.measures
        labels = label_shares(learner) if self.labels else None
        return Facts(
            learner.steps, sizes, samples, schema.size, schema, frozen, offered, measures, labels, learner.varies,
            label_counts(learner.task.train),
        ), None  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fold(Job):
    """Merges a message early; the message is the input."""

    weight: int
    part: int

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Fold it into the learner's sum."""
        host.learners[client].fold(self.weight, self.part, next(inputs))
        return None, None


@dataclass(frozen=True, slots=True)
class Take(Job):
    """Begins an event: what was folded so far belongs to it."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Take what was folded."""
        host.learners[client].take()
        return None, None


@dataclass(frozen=True, slots=True)
class PutBack(Job):
    """Undoes `Take`."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Put back what was taken."""
        host.learners[client].put_back()
        return None, None


@dataclass(frozen=True, slots=True)
class Step(Job):
    """Runs a compute event: merges the messages that are its inputs, trains, and encodes if `encode`.

    Behind the messages come the references `towards` which it may encode.
    """

    own: int
    weights: tuple[int, ...]
    """Of each message."""
    parts: tuple[int, ...]
    """Of each message."""
    adopts: bool
    encode: bool
    measure: bool
    """Whether drift and distortion are measured."""
    gives: int = 0
    """The mass that is pushed."""
    towards: int = 0
    """How many references there are."""
    offers: bool = False
    """Whether the merged model is offered as one."""
    senders: tuple[str, ...] = ()
    """Of each message."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> tuple[Outcome, Any]:
        """Return the outcome; the payloads are the product."""
        models = [_new(Model, model) for model in zip(self.weights, self.parts, inputs, strict=False)]
        towards = _offered(inputs, self.towards)
        work = Work(self.own, models, self.adopts, self.gives, towards, self.offers, self.senders)
        learner = host.learners[client]
        step = learner.step if host.strict or not isinstance(learner, Learner) else learner.attempt
        outcome = step(work, encode=self.encode, measure=self.measure)
        return outcome, outcome.payloads


@dataclass(frozen=True, slots=True)
class Encode(Job):
    """Encodes the weights as they are, which go with the mass `gives`; the inputs are references `towards` which."""

    towards: int = 0
    gives: int = 0

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Make payloads."""
        learner = host.learners[client]
        return None, learner.encode(_offered(inputs, self.towards), self.gives)


@dataclass(frozen=True, slots=True)
class KeepOffer(Job):
    """Keeps the model that an event has offered as a reference, and nothing else of what it has sent."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Make a product of it alone."""
        return None, {part: payload for part, payload in next(inputs).items() if part == OFFER}


@dataclass(frozen=True, slots=True)
class Evaluate(Job):
    """Scores the model on the client's own test data, or on the `global_test`."""

    global_test: bool = False
    elsewhere: bool = False
    """Whether other weights than its own are scored: a row, which is the input."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> tuple[Score, None]:
        """Return the score."""
        learner = host.learners[client]
        samples = host.global_samples() if self.global_test else None
        with nullcontext() if not self.elsewhere else set_to(learner, next(inputs)):
            score = learner.evaluate(samples, shared=self.elsewhere)
        return replace(score, tallies=()) if self.global_test else score, None  # only own samples are pooled


@dataclass(frozen=True, slots=True)
class Save(Job):
    """Saves the learner."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> tuple[State, None]:  # noqa: ARG002
        """Return the state that `Restore` takes."""
        return host.learners[client].save(), None


@dataclass(frozen=True, slots=True, eq=False)
class Restore(Job):
    """Restores the learner."""

    state: State

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Bring the learner back to the state that was saved."""
        host.learners[client].restore(self.state)
        return None, None


@dataclass(frozen=True, slots=True)
class Crash(Job):
    """Loses what was not committed: all that was folded since the last event."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Go back to the last commit."""
        learner = host.learners[client]
        learner.restore(learner.save(whole=False))
        return None, None


def _offered(inputs: Iterator[Any], count: int) -> list[Any]:
    return [next(inputs).get(OFFER) for _ in range(count)]


def row_of(learner: Learner) -> torch.Tensor:
    """Copy the shared weights of a learner into one row.

    >>> from pushcen.learning import Task
    >>> learner = Learner(Task(torch.nn.Linear(3, 2), (torch.zeros(4, 3), torch.zeros(4).long())))
    >>> len(row_of(learner))
    8
    """
    return rows.row_of(learner.schema, learner.model).cpu()


@contextmanager
def set_to(learner: Learner, row: torch.Tensor) -> Iterator[None]:
    """Give the learner's model the shared weights of `row` for a while; what is not shared stays its own."""
    tensors = learner.schema.tensors(learner.model)
    own = [tensor.detach().clone() for tensor in tensors]
    rows.write_row(learner.schema, learner.model, row)
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, before in zip(tensors, own, strict=True):
                tensor.copy_(before)
