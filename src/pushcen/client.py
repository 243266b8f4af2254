"""One client: its side of the protocol, its tensors, its random stream. Both worlds drive only this."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from pushcen.learning import Learner, Model, State, Work
from pushcen.protocol import Contact, Envelope, Peer, Rules, name_of


class Learning(Protocol):
    """What a client asks of its learner: a `Learner`, or what stands for one that works elsewhere, or later."""

    @property
    def steps(self) -> int:
        """How many optimiser steps a compute event takes."""

    def fold(self, weight: int, part: int, payloads: Any, /) -> None:
        """Merge a message early."""

    def take(self) -> None:
        """Hand what has been folded so far to the event that begins."""

    def put_back(self) -> None:
        """Undo `take`."""

    def step(self, work: Work, /) -> Any:
        """Merge, train, encode."""


L = TypeVar("L", bound=Learning)


class Client(Generic[L]):
    """A peer and a learner that go through each compute event together.

        begin, step (the long part), finish; then commit `save()`, then send
        begin, abort: as if begin had not been

    The payload of an envelope is what `finish` was given: payloads by part on a network; where the learner works later,
    whatever stands for them.

    >>> import torch
    >>> from pushcen.learning import Task
    >>> def client(name):
    ...     task = Task(torch.nn.Linear(4, 2), (torch.randn(64, 4), torch.randint(2, (64,))))
    ...     return Client(Peer.found(name), Learner(task), random.Random(name))
    >>> a, b = client("a"), client("b")
    >>> outcome = a.step(a.begin())
    >>> [envelope] = a.finish([b.peer.contact], outcome.payloads)
    >>> b.receive(envelope)
    True
    >>> [(weight, part, payloads)] = b.begin().models
    >>> weight == a.peer.held, part, payloads is outcome.payloads
    (True, 0, True)
    """

    def __init__(self, peer: Peer, learner: L, rng: random.Random) -> None:
        self.peer = peer
        self.learner = learner
        self.rng = rng
        self.weigh: Callable[[int, Any], int] | None = None
        """Returns what a message of some weight counts, by its payload; 0: it is not merged. None: its weight."""

    def receive(self, envelope: Envelope) -> bool:
        """Take an envelope in, if it is news; merge what has to make room for it. Return whether it was news."""
        receipt = self.peer.receive(envelope)
        if receipt.fold is not None:
            self._fold(*receipt.fold)
        return receipt.news

    def begin(self) -> Work:
        """Start a compute event; return what `step` will merge."""
        event = self.peer.begin()
        self.learner.take()
        entries = event.models
        if self.weigh is not None:
            weighed = [(self.weigh(weight, env.payload), env) for weight, env in entries]
            entries = [entry for entry in weighed if entry[0]]
        models = [Model(weight, env.part, env.payload) for weight, env in entries]
        return Work(event.own, models, event.adopts, senders=[name_of(env.sender) for _, env in entries])

    def step(self, work: Work) -> Any:
        """Merge, train, encode: the long part, which may run in another thread while envelopes come in."""
        return self.learner.step(work)

    def finish(self, receivers: Sequence[Contact], payloads: Any, parts: Sequence[int] = ()) -> list[Envelope]:
        """End the event: credit what was merged, split the mass. Commit `save()`, then send the envelopes."""
        return self.peer.finish(receivers, payloads, parts, self.learner.steps)

    def abort(self) -> None:
        """Undo `begin`, while the learner has not stepped."""
        self.learner.put_back()
        for weight, envelope in self.peer.abort():
            self._fold(weight, envelope)

    def _fold(self, weight: int, envelope: Envelope) -> None:
        if self.weigh is not None and not (weight := self.weigh(weight, envelope.payload)):
            return
        self.learner.fold(weight, envelope.part, envelope.payload)

    def save(self: "Client[Learner]", *, optimiser: bool = True) -> State:
        """Return the state of one commit. After a restart, later envelopes bring again what it has not credited."""
        tensors, plain = self.learner.save(whole=False, optimiser=optimiser)
        return State(tensors, {"peer": self.peer.save(), "learner": plain, "rng": self.rng.getstate()})

    @classmethod
    def restore(cls, state: State, learner: L, rules: Rules) -> Self:
        """Start again from the last commit, in a new boot; `learner` is a fresh one for the same task."""
        return cls._revived(state, Peer.restore(state.plain["peer"], rules), learner)

    @classmethod
    def _revived(cls, state: State, peer: Peer, learner: Any) -> Self:
        learner.restore(State(state.tensors, state.plain["learner"]))
        version, internal, gauss = state.plain["rng"]
        rng = random.Random()
        rng.setstate((version, tuple(internal), gauss))
        return cls(peer, learner, rng)
