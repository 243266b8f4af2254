"""Which references a push in the simulated world may be the difference to, and when a client offers a new one.

All of it is decided by names, before any weights are known; later on, the learner finds out which one is the nearest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushcen.learning import Work
from pushcen.protocol import Contact
from pushcen.references import ReferenceName, References
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.jobs import Encode, KeepOffer

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


@dataclass(frozen=True, slots=True)
class Push:
    """A push as it is planned: to which references it may be the difference, what it offers, and how much it gives."""

    towards: list[tuple[ReferenceName, Ticket]]
    """The references that all receivers have, or get with it."""
    offer: ReferenceName | None
    """The name under which the client offers its own model with it, if it does."""
    gives: int
    """The mass that is pushed."""

    @classmethod
    def plan(cls, engine: "Engine", node: SimulatedClient, receivers: Sequence[Contact]) -> "Push":
        """Return the plan for the push at the end of a compute event. Who has no mass to give offers nothing."""
        assert node.references is not None
        gives, there = node.peer.gives(len(receivers), node.facts.steps), _there(engine, receivers)
        offer = node.references.due(node.client.rng, node.facts.steps) if gives else None
        if offer is not None and not all(one.lacks(offer) for one in there):
            offer = None  # somebody else was first
        return cls(_common(node, there, offer or node.references.newest), offer, gives)

    def of(self, work: Work) -> Work:
        """Return the work, with what the learner has to know of the push."""
        towards = [ticket for _, ticket in self.towards]
        return work._replace(gives=self.gives, towards=towards, offers=self.offer is not None)

    def note(self, node: SimulatedClient, ticket: Ticket) -> None:
        """Hold what is offered, and attach to the message the references that it may be the difference to."""
        ticket.bases = self.towards
        if self.offer is not None and node.references is not None:
            kept = node.proxy.ask(KeepOffer(), ticket)
            node.references.hold(self.offer, kept)
            ticket.bases = [*self.towards, (self.offer, kept)]


def encode(engine: "Engine", node: SimulatedClient, receivers: Sequence[Contact]) -> Any:
    """Return the ticket for a message of a leaving client's model, encoded for these receivers of all its mass."""
    if node.references is None:
        return node.proxy.ask(Encode())
    towards = _common(node, _there(engine, receivers), node.references.newest)
    gives = node.peer.held if receivers else 0
    ticket = node.proxy.ask(Encode(len(towards), gives), *[ticket for _, ticket in towards])
    ticket.bases = towards
    return ticket


def _there(engine: "Engine", receivers: Sequence[Contact]) -> list[References]:
    """Return the references of each receiver that is there, as it would answer when asked."""
    return [other.references for peer, _ in receivers if (other := engine.at.get(peer)) and other.references]


def _common(
    node: SimulatedClient, there: Sequence[References], along: ReferenceName | None
) -> list[tuple[ReferenceName, Ticket]]:
    """Return those references of a client that all receivers hold once they have got `along`."""
    assert node.references is not None
    after = [one.after(along) for one in there]
    return [(name, ticket) for name, ticket in node.references.held.items() if all(name in held for held in after)]
