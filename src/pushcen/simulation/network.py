"""The network of the simulated world: takes envelopes to their receivers, and answers back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pushcen.protocol import Envelope, PeerId, name_of
from pushcen.references import ReferenceName
from pushcen.simulation.backlog import Backlog
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.queue import ANSWER, DELIVER, QueueEvent
from pushcen.streams import restore_stream, stream

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

ARRIVED, FAILED, NOTHING = "arrived", "failed", "nothing"


@dataclass(slots=True, eq=False)
class Delivery(QueueEvent):
    """An envelope, or its second copy, comes to its receiver; or not."""

    kind: ClassVar[str] = "deliver"
    priority: ClassVar[int] = DELIVER
    envelope: Envelope
    copy: bool = False

    def happen(self, engine: "Engine") -> None:
        """Deliver it, or lose it."""
        engine.network.deliver(self.envelope, self.copy)

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return [self.envelope, self.copy]

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        envelope, copy = data
        return cls(Envelope(*envelope), copy)


@dataclass(slots=True, eq=False)
class Reply(QueueEvent):
    """A sender hears what became of an envelope, or gives up waiting for it."""

    kind: ClassVar[str] = "answer"
    priority: ClassVar[int] = ANSWER
    envelope: Envelope
    outcome: str
    boot: int

    def happen(self, engine: "Engine") -> None:
        """Tell the sender."""
        engine.network.reply(self.envelope, self.outcome, self.boot)

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return [self.envelope, self.outcome, self.boot]

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        envelope, outcome, boot = data
        return cls(Envelope(*envelope), outcome, boot)


@dataclass(slots=True, eq=False)
class ReferenceDelivery(QueueEvent):
    """A reference comes to a client, before the message that it goes with; or not."""

    kind: ClassVar[str] = "reference"
    priority: ClassVar[int] = DELIVER
    sender: int
    receiver: PeerId
    name: ReferenceName
    ticket: Any
    goes_with: Envelope | None = None
    """The message, without its payload, if that may be withdrawn."""

    def happen(self, engine: "Engine") -> None:
        """Deliver it, or lose it."""
        if self.goes_with is None or not engine.network.backlog.is_withdrawn(self.goes_with):
            engine.network.deliver_reference(engine.nodes[self.sender], self.receiver, self.name, self.ticket)

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return [self.sender, self.receiver, self.name, self.ticket, self.goes_with]

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        sender, receiver, name, ticket, *rest = data
        goes_with = Envelope(*rest[0]) if rest and rest[0] else None
        return cls(sender, receiver, ReferenceName(*name), ticket, goes_with)


class SimulatedNetwork:
    """Carries messages as the `NetworkOptions` section says. What arrives at once needs no queue."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._network = network = engine.world.network
        self._instant, self._loss, self._notice = network.instant, network.loss, network.notice
        self._rng = stream(engine.world.seed, "network")
        self._lines = engine.world.lines()
        self.backlog = Backlog()

    def send(self, node: SimulatedClient, envelopes: Sequence[Envelope]) -> None:
        """Send what a client pushes."""
        sizes = self._sizes(node, envelopes[0].payload) if envelopes else node.facts.sizes
        node.messages_sent += len(envelopes)
        node.bytes_sent += sum([sizes[envelope[2]] for envelope in envelopes])
        if self._instant:
            self._send_at_once(node, envelopes, sizes)
        else:
            self._send_later(node, envelopes, sizes)
        if self._engine.recorder is not None:
            self._engine.recorder.sent(node, envelopes, sizes)

    def _send_at_once(self, node: SimulatedClient, envelopes: Sequence[Envelope], sizes: dict[int, int]) -> None:
        loss, at, peer, random = self._loss, self._engine.at, node.client.peer, self._rng.random
        exchanges = self._engine.exchanges
        answers_get_lost = loss and self._notice == "doubt"
        if node.references is not None:
            for envelope in envelopes:
                if self._lacks(node, envelope):
                    self.deliver_reference(node, envelope.receiver, *self._newest(node))
        self._engine.events += len(envelopes)
        for envelope in envelopes:
            other = at.get(envelope[1])
            if other is None or not other.online or (loss and random() < loss):
                self._lose(node, envelope, sizes[envelope[2]])
                if self._notice == "sure":
                    peer.failed(envelope)
                elif self._notice == "silent":
                    peer.arrived(envelope, peer.boots.get(envelope[1], 1))
                continue
            client = other.client
            if other.references is not None and not _understands(other, envelope):
                self._lose(node, envelope, sizes[envelope[2]])
                continue
            other.bytes_received += sizes[envelope[2]]
            if client.receive(envelope) and exchanges is not None:
                exchanges.received(other, envelope)
            if other.waits_since is not None:
                self._engine.received(other)
            if not answers_get_lost or random() >= loss:
                peer.arrived(envelope, client.peer.boot)

    def _send_later(self, node: SimulatedClient, envelopes: Sequence[Envelope], sizes: dict[int, int]) -> None:
        network, queue, peer = self._network, self._engine.queue, node.client.peer
        if not network.backlog:
            self._withdraw(node)
        departure = max(self._engine.now, node.free)
        for envelope in envelopes:
            lacks = self._lacks(node, envelope)
            size, reference = sizes[envelope.part], lacks * node.facts.reference_size
            if not network.backlog:
                self.backlog.add(node.index, departure, envelope, size, reference)
            receiver = int(name_of(envelope.receiver))
            leaving, further = self._lines.times(size + reference, node.index, receiver, self._rng)
            departure += leaving
            arrival = departure + network.way(self._rng) + further
            if lacks:  # on the same line, so it is there first
                goes_with = None if network.backlog else envelope._replace(payload=None)
                queue.put(arrival, ReferenceDelivery(node.index, envelope.receiver, *self._newest(node), goes_with))
            queue.put(arrival, Delivery(envelope))
            if network.notice == "silent":
                peer.arrived(envelope, peer.boots.get(envelope.receiver, 1))
            else:
                node.expects[envelope.receiver] = node.expects.get(envelope.receiver, 0) + 1
        node.free = departure

    def _withdraw(self, node: SimulatedClient) -> None:
        """Take back what a client has pushed and not begun to send: nothing of it was sent, and its mass returns."""
        for waiting in self.backlog.withdraw(node.index, self._engine.now):
            sender, receiver, part, sequence = waiting.message
            node.free = min(node.free, waiting.begins)
            node.messages_sent -= 1
            node.bytes_sent -= waiting.size + waiting.reference
            node.reference_bytes -= waiting.reference
            self._no_more(node, PeerId(receiver))
            if sender == node.peer.me:
                node.peer.failed(Envelope(PeerId(sender), PeerId(receiver), part, sequence, 0, None))

    def deliver(self, envelope: Envelope, copy: bool) -> None:
        """Hand an envelope, or its second copy, to its receiver, unless it is lost; and plan the answer."""
        if self.backlog.is_withdrawn(envelope):
            self.backlog.over(envelope)
            return
        network, engine, random = self._network, self._engine, self._rng.random
        sender, receiver = engine.nodes[int(name_of(envelope.sender))], engine.at.get(envelope.receiver)
        size = self._sizes(sender, envelope.payload)[envelope.part]
        arrives = receiver is not None and receiver.online and not (network.loss and random() < network.loss)
        refused = arrives and receiver is not None and not _understands(receiver, envelope)
        if refused:
            self._lose(sender, envelope, size)
        elif receiver is not None and arrives:
            receiver.bytes_received += size
            if receiver.client.receive(envelope) and engine.exchanges is not None:
                engine.exchanges.received(receiver, envelope)
            engine.received(receiver)
            if engine.recorder is not None:
                engine.recorder.delivered("d" if copy else "a", envelope)
            if not copy and network.duplicate and random() < network.duplicate:
                engine.queue.put(engine.now + network.hold * random(), Delivery(envelope, copy=True))
        else:
            self._lose(sender, envelope, size)
        if copy or network.notice == "silent":
            return
        if refused:
            outcome = NOTHING
        elif arrives:
            heard = network.notice == "sure" or random() >= network.loss
            outcome = ARRIVED if heard else NOTHING
        else:
            outcome = FAILED if network.notice == "sure" else NOTHING
        boot = receiver.client.peer.boot if receiver is not None else 1
        way = network.way(self._rng) + self._lines.delay(int(name_of(envelope.receiver)), sender.index)
        engine.queue.put(engine.now + way, Reply(envelope, outcome, boot))

    def deliver_reference(self, node: SimulatedClient, receiver: PeerId, name: ReferenceName, ticket: Ticket) -> None:
        """Hand a reference to its receiver, unless it is lost."""
        other, size = self._engine.at.get(receiver), node.facts.reference_size
        if other is None or not other.online or (self._loss and self._rng.random() < self._loss):
            node.bytes_lost += size
        elif other.references is not None:
            other.references.hold(name, ticket)
            other.bytes_received += size

    def reply(self, envelope: Envelope, outcome: str, boot: int) -> None:
        """Tell a sender what became of an envelope, or that no answer will come."""
        node = self._engine.at.get(envelope.sender)
        if node is None:
            return
        self._no_more(node, envelope.receiver)
        if not (node.online or node.peer.status == "leaving"):
            return
        if outcome == ARRIVED:
            node.peer.arrived(envelope, boot)
        elif outcome == FAILED:
            node.peer.failed(envelope)

    @staticmethod
    def _no_more(node: SimulatedClient, receiver: PeerId) -> None:
        """Expect one answer less from a receiver."""
        left = node.expects.pop(receiver, 1) - 1
        if left > 0:
            node.expects[receiver] = left

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"network": self._rng.getstate(), "backlog": self.backlog.save()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        restore_stream(self._rng, state["network"])
        if "backlog" in state:  # older checkpoints have none
            self.backlog.restore(state["backlog"])

    def _lacks(self, node: SimulatedClient, envelope: Envelope) -> bool:
        """Return whether a receiver has nothing as new as a client's newest reference, as it says when it is asked;
        then that is sent, too.
        """
        newest = None if node.references is None else node.references.newest
        other = self._engine.at.get(envelope.receiver) if newest else None
        if newest is None or other is None or other.references is None or not other.references.lacks(newest):
            return False
        node.bytes_sent += node.facts.reference_size
        node.reference_bytes += node.facts.reference_size
        return True

    @staticmethod
    def _newest(node: SimulatedClient) -> tuple[ReferenceName, Any]:
        assert node.references is not None
        return next(reversed(node.references.held.items()))

    def _sizes(self, node: SimulatedClient, ticket: Ticket) -> dict[int, int]:
        """Return the bytes of a message, by part; if they depend on its numbers, once it is there."""
        if ticket.size:
            return {0: ticket.size}
        if not node.facts.varies:
            return node.facts.sizes
        return {part: len(data) for part, data in self._engine.executor.messages(ticket).items()}

    def _lose(self, node: SimulatedClient, envelope: Envelope, size: int) -> None:
        node.messages_lost += 1
        node.bytes_lost += size
        if self._engine.recorder is not None:
            self._engine.recorder.delivered("l", envelope)


def _understands(node: SimulatedClient, envelope: Envelope) -> bool:
    """Return whether a client holds whatever a message may be the difference to; else it refuses it, by its header."""
    return node.references is None or all(name in node.references.held for name, _ in envelope.payload.bases)
