"""The network of the simulated world: takes envelopes to their receivers, and answers back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushcen.protocol import Envelope, name_of
from pushcen.simulation.node import SimulatedClient
from pushcen.simulation.queue import ANSWER, DELIVER
from pushcen.streams import stream

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

ARRIVED, FAILED, NOTHING = "arrived", "failed", "nothing"


class SimulatedNetwork:
    """Carries messages as the `NetworkOptions` section says. What arrives at once needs no queue."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._network = network = engine.world.network
        self._instant, self._loss, self._notice = network.instant, network.loss, network.notice
        self.rng = stream(engine.world.seed, "network")

    def send(self, node: SimulatedClient, envelopes: Sequence[Envelope]) -> None:
        """Send what a client pushes."""
        sizes = node.facts.sizes
        node.messages_sent += len(envelopes)
        node.bytes_sent += sum([sizes[envelope[2]] for envelope in envelopes])
        if self._instant:
            self._send_at_once(node, envelopes, sizes)
        else:
            self._send_later(node, envelopes, sizes)

    def _send_at_once(self, node: SimulatedClient, envelopes: Sequence[Envelope], sizes: dict[int, int]) -> None:
        loss, at, peer, random = self._loss, self._engine.at, node.client.peer, self.rng.random
        answers_get_lost = loss and self._notice == "doubt"
        self._engine.events += len(envelopes)
        for envelope in envelopes:
            other = at.get(envelope[1])
            if other is None or not other.online or (loss and random() < loss):
                self._lose(node, sizes[envelope[2]])
                if self._notice == "sure":
                    peer.failed(envelope)
                elif self._notice == "silent":
                    peer.arrived(envelope, peer.boots.get(envelope[1], 1))
                continue
            client = other.client
            client.receive(envelope)
            other.bytes_received += sizes[envelope[2]]
            if not answers_get_lost or random() >= loss:
                peer.arrived(envelope, client.peer.boot)

    def _send_later(self, node: SimulatedClient, envelopes: Sequence[Envelope], sizes: dict[int, int]) -> None:
        network, now, peer = self._network, self._engine.now, node.client.peer
        departure = max(now, node.free)
        for envelope in envelopes:
            if network.bandwidth:
                departure += sizes[envelope.part] / network.bandwidth
            self._engine.queue.put(departure + network.way(self.rng), DELIVER, "deliver", [envelope, False])
            if network.notice == "silent":
                peer.arrived(envelope, peer.boots.get(envelope.receiver, 1))
            else:
                node.expects[envelope.receiver] = node.expects.get(envelope.receiver, 0) + 1
        node.free = departure

    def deliver(self, data: list[object]) -> None:
        """Let an envelope, or its second copy, come to its receiver; or not."""
        fields, copy = data
        envelope: Envelope = fields  # type: ignore[assignment]
        network, random = self._network, self.rng.random
        sender, receiver = self._engine.nodes[int(name_of(envelope.sender))], self._engine.at.get(envelope.receiver)
        size = sender.facts.sizes[envelope.part]
        arrives = receiver is not None and receiver.online and not (network.loss and random() < network.loss)
        if receiver is not None and arrives:
            receiver.client.receive(envelope)
            receiver.bytes_received += size
            if not copy and network.duplicate and random() < network.duplicate:
                later = self._engine.now + network.hold * random()
                self._engine.queue.put(later, DELIVER, "deliver", [envelope, True])
        else:
            self._lose(sender, size)
        if copy or network.notice == "silent":
            return
        if arrives:
            heard = network.notice == "sure" or random() >= network.loss
            outcome = ARRIVED if heard else NOTHING
        else:
            outcome = FAILED if network.notice == "sure" else NOTHING
        boot = receiver.client.peer.boot if receiver is not None else 1
        back = self._engine.now + network.way(self.rng)
        self._engine.queue.put(back, ANSWER, "answer", [envelope, outcome, boot])

    def answer(self, data: list[object]) -> None:
        """Let a sender hear what became of an envelope, or give up waiting for it."""
        fields, outcome, boot = data
        envelope: Envelope = fields  # type: ignore[assignment]
        node = self._engine.at.get(envelope.sender)
        if node is None:
            return
        left = node.expects.pop(envelope.receiver, 1) - 1
        if left > 0:
            node.expects[envelope.receiver] = left
        if not (node.online or node.peer.status == "leaving"):
            return
        if outcome == ARRIVED:
            node.peer.arrived(envelope, boot)  # type: ignore[arg-type]
        elif outcome == FAILED:
            node.peer.failed(envelope)

    def _lose(self, node: SimulatedClient, size: int) -> None:
        node.messages_lost += 1
        node.bytes_lost += size
