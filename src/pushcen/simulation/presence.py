"""Who is there: joining, going and coming back, crashing, leaving for good with a farewell."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pushcen.protocol import Farewell, Peer, epoch_of
from pushcen.record import CRASHES, FAREWELL, JOINS, LEAVES, REPAIRED, RETURNS
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.offers import encode
from pushcen.simulation.queue import PRESENCE, QueueEvent
from pushcen.streams import stream

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


@dataclass(slots=True, eq=False)
class Visit(QueueEvent):
    """A client comes or goes."""

    priority: ClassVar[int] = PRESENCE
    index: int

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return self.index

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        return cls(data)


class Join(Visit):
    """A client comes for the first time."""

    __slots__ = ()
    kind = "join"

    def happen(self, engine: "Engine") -> None:
        """Bring it in."""
        engine.presence.join(self.index)


class Leave(Visit):
    """A client goes, for a while or with a farewell."""

    __slots__ = ()
    kind = "leave"

    def happen(self, engine: "Engine") -> None:
        """Take it out."""
        engine.presence.leave(self.index)


class Return(Visit):
    """A client comes back."""

    __slots__ = ()
    kind = "return"

    def happen(self, engine: "Engine") -> None:
        """Bring it back."""
        engine.presence.come_back(self.index)


class Breakdown(Visit):
    """A client crashes."""

    __slots__ = ()
    kind = "crash"

    def happen(self, engine: "Engine") -> None:
        """Take it out, and what it had not committed."""
        engine.presence.crash(self.index)


class Repair(Visit):
    """A client that crashed starts again."""

    __slots__ = ()
    kind = "repaired"

    def happen(self, engine: "Engine") -> None:
        """Bring it back."""
        engine.presence.repaired(self.index)


class HandOver(Visit):
    """A client that leaves gives its mass away."""

    __slots__ = ()
    kind = "hand over"

    def happen(self, engine: "Engine") -> None:
        """Send what it still has."""
        engine.presence.hand_over(self.index)


class Presence:
    """Makes clients come and go as `ParticipationOptions` says. When they do is the same for every method."""

    def __init__(self, engine: "Engine") -> None:
        world = engine.world
        self._engine = engine
        self._section = world.participation
        self._churning = self._section.churning(world.clients, world.seed)
        self._crashing = self._section.crashing(world.clients, world.seed)
        self._trace = world.availability()
        self.farewells: list[Farewell] = []
        self.left: list[dict[str, Any]] = []  # what peers saved that are gone for good

    def plan(self, join_times: dict[int, float]) -> None:
        """Plan when each client joins."""
        for node in self._engine.nodes:
            time = join_times.get(node.index, 0.0)
            if self._trace and not self._trace[node.index].is_there(time):
                time = self._trace[node.index].next_change(time)
            self._engine.queue.put(time, Join(node.index))

    def join(self, index: int) -> None:
        """Bring a client in for the first time."""
        node = self._engine.nodes[index]
        node.present = True
        self._arrive(node, JOINS)
        if index in self._churning or self._trace:
            self._later(Leave(index), self._section.stay)
        if index in self._crashing:
            self._later(Breakdown(index), self._section.between)

    def leave(self, index: int) -> None:
        """Take a client out, for a while or with a farewell. An event that has begun is broken off."""
        node = self._engine.nodes[index]
        if not node.online:  # it crashed, and is not back yet
            self._later(Return(index) if self._trace else Leave(index), self._section.stay)
            return
        if node.work is not None:
            node.client.abort()
        self._depart(node, FAREWELL if self._section.farewell else LEAVES)
        if self._section.farewell:
            self._bid_farewell(node)
        self._later(Return(index), self._section.away)

    def come_back(self, index: int) -> None:
        """Bring a client back: as it was, or in a new epoch if it has bid farewell."""
        node = self._engine.nodes[index]
        peer = node.peer
        if self._is_away(index):  # by now again
            self._later(Return(index), self._section.away)
            return
        if peer.status == "leaving":
            if peer.me in self._engine.at:  # it still has mass to hand over
                self._engine.queue.put(self._engine.now + node.pace, Return(index))
                return
            node.connect(peer.renewed(epoch_of(peer.me) + 1))
        self._arrive(node, RETURNS)
        self._later(Leave(index), self._section.stay)

    def crash(self, index: int) -> None:
        """Take from a client all that it had not committed; it is away until it is repaired."""
        node = self._engine.nodes[index]
        if node.online:
            self._depart(node, CRASHES)
            peer = node.peer
            node.connect(Peer.restore(peer.save(), peer.rules))
            self._engine.lose(node)
            self._engine.queue.put(self._engine.now + self._section.repair, Repair(index))
        self._later(Breakdown(index), self._section.between)

    def repaired(self, index: int) -> None:
        """Bring a client that crashed back, unless it has come and gone meanwhile as its trace says."""
        node = self._engine.nodes[index]
        if not node.online and not self._is_away(index):
            self._arrive(node, REPAIRED)

    def hand_over(self, index: int) -> None:
        """Hand over a leaving client's mass, again and again until all of it is credited elsewhere."""
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
        heirs, _ = self._engine.neighbours.choose(node.name, peer, self._engine.now)
        model, sent, masses = encode(self._engine, node, heirs), dict(peer.sent), []
        self._engine.mark(node, model)
        envelopes = peer.hand_over(heirs, model)
        for envelope in envelopes:
            masses.append(envelope.total - sent.get(envelope.receiver, 0))
            sent[envelope.receiver] = envelope.total
        self._engine.evaluator.pushed(node, envelopes, masses)
        self._engine.network.send(node, envelopes)
        self._engine.queue.put(self._engine.now + node.pace, HandOver(index))

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"farewells": self.farewells, "gone": self.left}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.farewells = [Farewell(*farewell) for farewell in state["farewells"]]
        self.left = state["gone"]

    def _arrive(self, node: SimulatedClient, how: str) -> None:
        engine = self._engine
        node.online = True
        if engine.recorder is not None:
            engine.recorder.visited(node, how)
        engine.neighbours.arrive(node.name, node.peer)
        engine.at[node.peer.me] = node
        self._hear_farewells(node)
        if engine.moves_mass and node.visits:  # else nobody knows it yet
            self._greet(node)
        if engine.pacing is not None:
            engine.pacing.arrive(node)
        engine.ready(node)

    def _depart(self, node: SimulatedClient, how: str) -> None:
        node.online = False
        if self._engine.recorder is not None:
            self._engine.recorder.visited(node, how)
        node.attempt += 1  # what it was computing will never be done
        node.work = node.waits_since = None
        self._engine.neighbours.depart(node.name)
        if self._engine.pacing is not None:
            self._engine.pacing.depart(node)

    def _greet(self, node: SimulatedClient) -> None:
        """Exchange hellos: who restarted meanwhile says what it has and has not got."""
        peer = node.peer
        for name in self._engine.neighbours.online.names:
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
        """Tell a client about everybody who left since it was last told."""
        peer = node.client.peer
        for farewell in self.farewells[node.heard :]:
            if farewell.peer in peer.sent or not self._engine.moves_mass:
                peer.hear_farewell(farewell)
        node.heard = len(self.farewells)

    def _is_away(self, index: int) -> bool:
        return self._trace is not None and not self._trace[index].is_there(self._engine.now)

    def _later(self, visit: Visit, mean: float) -> None:
        """Plan a visit, after `mean` on average; coming and going is as the trace says, if there is one."""
        engine, node = self._engine, self._engine.nodes[visit.index]
        node.visits += 1
        if self._trace and isinstance(visit, Leave | Return):
            if (time := self._trace[visit.index].next_change(engine.now)) < math.inf:
                engine.queue.put(time, visit)
            return
        rng = stream(engine.world.seed, "presence", node.index, node.visits)
        engine.queue.put(engine.now + rng.expovariate(1 / mean), visit)
