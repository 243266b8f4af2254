"""Who is there: joining, going and coming back, crashing, leaving for good with a farewell."""

from typing import TYPE_CHECKING, Any

from pushcen.protocol import Farewell, Peer, epoch_of
from pushcen.simulation.node import SimulatedClient
from pushcen.simulation.queue import PRESENCE
from pushcen.streams import stream

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


class Presence:
    """Lets clients come and go as `ParticipationOptions` says. When they do is the same for every method."""

    def __init__(self, engine: "Engine") -> None:
        world = engine.world
        self._engine = engine
        self._section = world.participation
        self._churning = self._section.churning(world.clients, world.seed)
        self._crashing = self._section.crashing(world.clients, world.seed)
        self.farewells: list[Farewell] = []
        self.left: list[dict[str, Any]] = []  # what peers saved that are gone for good

    def plan(self, join_times: dict[int, float]) -> None:
        """Let everybody join when it is time."""
        for node in self._engine.nodes:
            self._engine.queue.put(join_times.get(node.index, 0.0), PRESENCE, "join", node.index)

    def join(self, index: int) -> None:
        """Let a client come for the first time."""
        node = self._engine.nodes[index]
        node.present = True
        self._arrive(node)
        if index in self._churning:
            self._later(node, "leave", self._section.stay)
        if index in self._crashing:
            self._later(node, "crash", self._section.between)

    def leave(self, index: int) -> None:
        """Let a client go, for a while or with a farewell. An event that has begun is broken off."""
        node = self._engine.nodes[index]
        if not node.online:
            self._later(node, "leave", self._section.stay)
            return
        if node.work is not None:
            node.client.abort()
        self._depart(node)
        if self._section.farewell:
            self._bid_farewell(node)
        self._later(node, "return", self._section.away)

    def come_back(self, index: int) -> None:
        """Let a client return: as it was, or in a new epoch if it has bid farewell."""
        node = self._engine.nodes[index]
        peer = node.peer
        if peer.status == "leaving":
            if peer.me in self._engine.at:  # it still has mass to hand over
                self._engine.queue.put(self._engine.now + node.pace, PRESENCE, "return", index)
                return
            node.connect(peer.renewed(epoch_of(peer.me) + 1))
        self._arrive(node)
        self._later(node, "leave", self._section.stay)

    def crash(self, index: int) -> None:
        """Let a client lose all that it had not committed, and be away until it is repaired."""
        node = self._engine.nodes[index]
        if node.online:
            self._depart(node)
            peer = node.peer
            node.connect(Peer.restore(peer.save(), peer.rules))
            self._engine.lose(node)
            self._engine.queue.put(self._engine.now + self._section.repair, PRESENCE, "repaired", index)
        self._later(node, "crash", self._section.between)

    def repaired(self, index: int) -> None:
        """Let a client that crashed start again."""
        self._arrive(self._engine.nodes[index])

    def hand_over(self, index: int) -> None:
        """Let a client that leaves give its mass away, again and again until all of it is credited elsewhere."""
        node, at = self._engine.nodes[index], self._engine.at
        peer = node.peer
        for who in list(peer.sent):
            other = at.get(who)
            if other is not None and (other.online or other.peer.status == "leaving"):
                peer.hear(other.peer.answer(peer.me))
        self._hear_farewells(node)
        if peer.gone:
            self.left.append(peer.save())
            del at[peer.me]
            return
        heirs = [contact for contact, _ in self._engine.choose(node)]
        model, sent, masses = node.proxy.ask("encode"), dict(peer.sent), []
        model.born = self._engine.steps
        envelopes = peer.hand_over(heirs, model)
        for envelope in envelopes:
            masses.append(envelope.total - sent.get(envelope.receiver, 0))
            sent[envelope.receiver] = envelope.total
        self._engine.looker.pushed(node, envelopes, masses)
        self._engine.carrier.send(node, envelopes)
        self._engine.queue.put(self._engine.now + node.pace, PRESENCE, "hand over", index)

    def _arrive(self, node: SimulatedClient) -> None:
        engine = self._engine
        node.online = True
        engine.online.add(node.name)
        engine.at[node.peer.me] = node
        self._hear_farewells(node)
        if engine.moves_mass and node.visits:  # else nobody knows it yet
            self._greet(node)
        engine.start(node)

    def _depart(self, node: SimulatedClient) -> None:
        node.online = False
        node.run += 1  # what it was computing will never be done
        node.work = None
        self._engine.online.remove(node.name)

    def _greet(self, node: SimulatedClient) -> None:
        """Exchange hellos: who restarted meanwhile says what it has and has not got."""
        peer = node.peer
        for name in self._engine.online.names:
            other = self._engine.by_name[name].client.peer
            if peer.me in other.sent:
                other.hear(peer.answer(other.me))
            if other.me in peer.sent:
                peer.hear(other.answer(peer.me))

    def _bid_farewell(self, node: SimulatedClient) -> None:
        peer = node.peer
        node.replaced += peer.replaced
        node.evicted += peer.evicted
        self._engine.lose(node)  # what was folded is dropped with the mailbox: its mass goes back to its senders
        self.farewells.append(peer.leave())
        for other in self._engine.nodes:
            if other.online or other.peer.status == "leaving":
                self._hear_farewells(other)
        if self._engine.moves_mass:
            self.hand_over(node.index)
        else:
            del self._engine.at[peer.me]

    def _hear_farewells(self, node: SimulatedClient) -> None:
        """Tell a client of everybody who left since it last heard."""
        peer = node.client.peer
        for farewell in self.farewells[node.heard :]:
            if farewell.peer in peer.sent or not self._engine.moves_mass:
                peer.hear_farewell(farewell)
        node.heard = len(self.farewells)

    def _later(self, node: SimulatedClient, kind: str, mean: float) -> None:
        node.visits += 1
        rng = stream(self._engine.world.seed, "presence", node.index, node.visits)
        self._engine.queue.put(self._engine.now + rng.expovariate(1 / mean), PRESENCE, kind, node.index)
