"""The de-biased reference model: w-bar = X_tot / Y_tot, wherever the mass is. One row of numbers, made by jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pushcen.codec import Accumulator, Payload
from pushcen.learning import Learner
from pushcen.protocol import Envelope, PeerId
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.jobs import Job, Result, row_of
from pushcen.simulation.network import Delivery

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine
    from pushcen.simulation.executors import Host

GROUP = 64  # models that one task adds up: so that not all of them are in memory at once
ROW, FOLDED, PAYLOADS = "row", "folded", "payloads"


@dataclass(frozen=True, slots=True)
class CopyRow(Job):
    """Copies the shared weights into one row."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Make the row."""
        return None, row_of(host.learners[client])


@dataclass(frozen=True, slots=True)
class CopyFolded(Job):
    """Copies the weighted sum of what was folded and is not merged yet, the running event's too."""

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Make the sum; None if there is nothing."""
        sums = [into.copy().total.cpu().double() for into in host.learners[client].folded]
        return None, sum(sums[1:], sums[0]) if sums else None


@dataclass(frozen=True, slots=True)
class Add(Job):
    """Adds weighted rows, payloads of whole models, or sums that are weighted already, to a sum, or begins one.

    The inputs are the sum, unless this is the `first`, and then what each of `models` names: its weight and its kind.
    """

    models: tuple[tuple[float, str], ...]
    first: bool

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Make the sum."""
        learner = host.learners[client]
        total = torch.zeros(learner.schema.size, dtype=torch.float64) if self.first else next(inputs).clone()
        for weight, kind in self.models:
            thing = next(inputs)
            if kind == PAYLOADS:
                thing = decoded(thing[0], learner)
            if thing is not None:
                total.add_(thing.double(), alpha=weight)
        return None, total


def decoded(payload: Payload, learner: Learner) -> torch.Tensor:
    """Return a message of a whole model as a row."""
    into = Accumulator.zeros(learner.schema)
    learner.add(payload, 1, into)
    return into.total.double()


class Part(NamedTuple):
    """A model, its mass, and whose chain knows it.

    `kind` is row (the node's own weights), folded (a sum in the node's learner, weighted already) or payloads.
    """

    node: SimulatedClient
    mass: int
    kind: str
    ticket: Any = None

    def ask(self) -> Any:
        """Return the ticket of the model."""
        return (
            self.node.proxy.ask(CopyRow() if self.kind == ROW else CopyFolded()) if self.ticket is None else self.ticket
        )


def parts(engine: "Engine") -> list[Part]:
    """List every model that has mass, and how much: together X_tot, and all mass there is.

    What is under way weighs on the envelope that brings it; what was lost there, on its sender's model, on which it
    will travel. Methods that move no mass give every model that is online the same weight.
    """
    if not engine.moves_mass:
        return [Part(node, 1, ROW) for node in engine.nodes if node.online]
    under_way = _under_way(engine)
    credited = {farewell.peer: farewell.credited for farewell in engine.presence.farewells}
    found = []
    for node in engine.nodes:
        peer, own = node.peer, node.peer.held
        for who, sent in peer.sent.items():
            other = engine.at.get(who)
            gone = credited.get(who, {}).get(peer.me, 0)
            there = gone if other is None else other.peer.answer(peer.me).accepted
            for envelope in under_way.get((peer.me, who), ()):
                if envelope.total > there:
                    found.append(Part(node, envelope.total - there, PAYLOADS, envelope.payload))
                    there = envelope.total
            own += sent - there
        waiting = [(mass, envelope.payload) for mass, envelope in peer.peek()]
        waiting += [(mass, payloads) for mass, _, payloads in node.work.models] if node.work else []
        folded = peer.waiting - sum(mass for mass, _ in waiting)
        found += [Part(node, own, ROW), Part(node, folded, FOLDED)]
        found += [Part(node, mass, PAYLOADS, ticket) for mass, ticket in waiting]
    return [part for part in found if part.mass]


def reference(engine: "Engine") -> Any:
    """Ask for the reference model: the sum of mass times model over all mass, in one row. None if nobody has any."""
    found = parts(engine)
    total = sum(part.mass for part in found)
    ticket = None
    for begin in range(0, len(found), GROUP):
        group = found[begin : begin + GROUP]
        inputs = [part.ask() for part in group]
        models = tuple(((1 if part.kind == FOLDED else part.mass) / total, part.kind) for part in group)
        first = ticket is None
        add = Add(models, first)
        ticket = engine.executor.submit(group[0].node.index, [add], inputs if first else [ticket, *inputs])
    return ticket


def _under_way(engine: "Engine") -> dict[tuple[PeerId, PeerId], list[Envelope]]:
    """Find the envelopes that are under way on each link, in the order in which they come."""
    found: dict[tuple[PeerId, PeerId], list[Envelope]] = {}
    for _, _, _, event in engine.queue.entries():
        if isinstance(event, Delivery) and not event.copy:
            envelope = event.envelope
            found.setdefault((envelope.sender, envelope.receiver), []).append(envelope)
    return found
