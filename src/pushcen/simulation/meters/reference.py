"""The de-biased reference model, and how far clients are from it: w-bar = X_tot / Y_tot, and E_con."""

from typing import TYPE_CHECKING, Any, NamedTuple

from pushcen.protocol import Envelope, PeerId
from pushcen.simulation import scores
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.node import SimulatedClient

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

GROUP = 64  # models that one task adds up: so that not all of them are in memory at once


class Part(NamedTuple):
    """A model, its mass, and whose chain knows it.

    `kind` is row (the node's own weights), folded (a sum in the node's learner, weighted already) or payloads.
    """

    node: SimulatedClient
    mass: int
    kind: str
    ticket: Any = None


def parts(engine: "Engine") -> list[Part]:
    """List every model that has mass, and how much: together X_tot, and all mass there is.

    What is under way weighs on the envelope that brings it; what was lost there, on its sender's model, on which it
    will travel. Methods that move no mass give every model that is online the same weight.
    """
    if not engine.moves_mass:
        return [Part(node, 1, "row") for node in engine.nodes if node.online]
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
                    found.append(Part(node, envelope.total - there, "payloads", envelope.payload))
                    there = envelope.total
            own += sent - there
        waiting = [(mass, envelope.payload) for mass, envelope in peer.peek()]
        waiting += [(mass, payloads) for mass, _, payloads in node.work.models] if node.work else []
        folded = peer.waiting - sum(mass for mass, _ in waiting)
        found += [Part(node, own, "row"), Part(node, folded, "folded")]
        found += [Part(node, mass, "payloads", ticket) for mass, ticket in waiting]
    return [part for part in found if part.mass]


def reference(engine: "Engine") -> Any:
    """Ask for the reference model: the sum of mass times model over all mass, in one row. None if nobody has any."""
    found = parts(engine)
    total = sum(part.mass for part in found)
    ticket = None
    for begin in range(0, len(found), GROUP):
        group = found[begin : begin + GROUP]
        inputs = [part.node.proxy.ask(part.kind) if part.ticket is None else part.ticket for part in group]
        models = [((1 if part.kind == "folded" else part.mass) / total, part.kind) for part in group]
        first = ticket is None
        ticket = engine.runs.submit(
            group[0].node.index, [("add", models, first)], inputs if first else [ticket, *inputs]
        )
    return ticket


def _under_way(engine: "Engine") -> dict[tuple[PeerId, PeerId], list[Envelope]]:
    """Find the envelopes that are under way on each link, in the order in which they come."""
    found: dict[tuple[PeerId, PeerId], list[Envelope]] = {}
    for _, _, _, kind, data in engine.queue.entries():
        if kind == "deliver" and not data[1]:
            envelope = data[0]
            found.setdefault((envelope.sender, envelope.receiver), []).append(envelope)
    return found


class ConsensusMeter(Meter):
    """The consensus error: the mean squared distance of clients' models from the reference."""

    name = "reference"
    needs_reference = True

    def look(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:
        """Measure how far everybody is."""
        asked = nodes if reference is not None else []
        tickets = [node.proxy.ask("distance", inputs=[reference]) for node in asked]
        return Reading(tickets, lambda found: {"consensus_error": scores.mean(found)})
