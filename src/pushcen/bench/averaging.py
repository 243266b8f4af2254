"""A protocol-only world in pseudo-time, in which peers average numbers: what rules do to mass and to the average.

A compute event merges, and pushes at its end; what is pushed arrives at once. `scripts/draw_protocol.py` makes the
tables and pictures of docs/protocol.md with it.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from pushcen.protocol import (
    Buffer,
    ByMass,
    Envelope,
    FixedGraph,
    NeighbourChoice,
    Online,
    Peer,
    RandomNeighbours,
    Rules,
    Whole,
    name_of,
)
from pushcen.protocol.graphs import check_connected, k_out


@dataclass(frozen=True)
class Links:
    """What becomes of a push: it may surely fail, end in doubt, or be lost without anyone noticing.

    In doubt, the envelope or only its answer is lost, one as likely as the other. It is sent again once.
    """

    fails: float = 0.0
    doubt: float = 0.0
    silent: float = 0.0

    def carry(
        self, envelope: Envelope, sender: Peer, deliver: Callable[[Envelope], None], rng: Random, boot: int
    ) -> None:
        """Deliver one push, or lose it, and report to its sender."""
        if rng.random() < self.fails:
            sender.failed(envelope)
            return
        if rng.random() < self.silent:
            sender.arrived(envelope, boot)
            return
        for _ in range(2):
            answered = rng.random() >= self.doubt
            if answered or rng.random() < 0.5:
                deliver(envelope)
            if answered:
                sender.arrived(envelope, boot)
                return


@dataclass
class Trace:
    """What was measured over time. Masses are shares of what was founded."""

    times: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)  # root mean square distance from the true average
    live: list[float] = field(default_factory=list)  # held, in a mailbox, or folded
    stranded: list[float] = field(default_factory=list)  # neither live nor destroyed
    offset: float = 0.0  # of what the peers agree on, at the end, from the true average
    spread: float = 0.0  # standard deviation over the peers at the end


class Averaging:
    """Peers with a number each, which they average. Numbers start normal with standard deviation 1."""

    def __init__(
        self,
        rules: Rules,
        neighbours: NeighbourChoice[str],
        pace: dict[str, float],
        rng: Random,
        links: Links = Links(),  # noqa: B008
        online: Online[str] | None = None,
        join_at: dict[str, float] | None = None,
    ) -> None:
        self.rng = rng
        self.links = links
        self.neighbours = neighbours
        self.pace = pace
        self.online = online
        self.values = {name: rng.gauss(0, 1) for name in pace}
        late = join_at or {}
        self.peers = {
            name: (Peer.join if name in late and not rules.join_mass else Peer.found)(name, rules) for name in pace
        }
        self.founded = sum(peer.founded for peer in self.peers.values())
        founders = [value for name, value in self.values.items() if self.peers[name].founded]
        self.truth = sum(founders) / len(founders)
        self.folds = dict.fromkeys(pace, 0.0)
        self.queue = [(late.get(name, 0.0) + pace[name] * rng.random(), name) for name in pace]
        heapq.heapify(self.queue)

    def run(self, until: float, every: float = 1.0) -> Trace:
        """Simulate until a moment; return what was measured `every` so often."""
        trace = Trace()
        look = every
        while self.queue[0][0] <= until:
            now, name = heapq.heappop(self.queue)
            while now > look:
                self.look(look, trace)
                look += every
            if self.online is not None:
                self.online.add(name)
            self.step(name)
            heapq.heappush(self.queue, (now + self.pace[name], name))
        self.look(until, trace)
        values = [self.values[name] for name, peer in self.peers.items() if peer.held]
        mean = sum(values) / len(values)
        trace.offset = mean - self.truth
        trace.spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        return trace

    def step(self, name: str) -> None:
        """Merge and push at one peer: the paper's Eqs. (pushsum-mass) and (pushsum-model)."""
        peer = self.peers[name]
        event = peer.begin()
        weight = event.own + event.folded + sum(weight for weight, _ in event.models)
        merged = event.own * self.values[name] + self.folds[name]
        merged += sum(weight * envelope.payload for weight, envelope in event.models)
        self.values[name], self.folds[name] = merged / weight, 0.0
        chosen = peer.rules.outbox.choose(lambda k: self.neighbours.draw(name, k))
        contacts = [self.peers[receiver].contact for receiver, _ in chosen]
        for envelope in peer.finish(contacts, self.values[name]):
            self.links.carry(envelope, peer, self.deliver, self.rng, boot=1)

    def deliver(self, envelope: Envelope) -> None:
        """Deliver an envelope."""
        name = name_of(envelope.receiver)
        fold = self.peers[name].receive(envelope).fold
        if fold:
            self.folds[name] += fold[0] * fold[1].payload

    def look(self, now: float, trace: Trace) -> None:
        """Measure all peers, and add it to the trace."""
        peers = self.peers.values()
        live = sum(peer.held + peer.waiting for peer in peers) / self.founded
        sent = sum(sum(peer.sent.values()) for peer in peers)
        accepted = sum(other.answer(peer.me).accepted for peer in peers for other in map(self._who, peer.sent))
        trace.times.append(now)
        trace.live.append(live)
        trace.stranded.append((sent - accepted) / self.founded)
        known = [self.values[name] - self.truth for name, peer in self.peers.items() if peer.held]
        trace.error.append((sum(value * value for value in known) / len(known)) ** 0.5)

    def _who(self, peer_id: str) -> Peer:
        return self.peers[peer_id.rpartition("/")[0]]


def unbalanced(rules: Rules, seed: int, links: Links = Links(), peers: int = 200) -> Averaging:  # noqa: B008
    """Return a world on a fixed directed graph with unequal degrees, whose peers differ in speed by up to 10 times."""
    rng = Random(seed)
    names = [f"p{i}" for i in range(peers)]
    edges = k_out(names, 4, rng)
    edges = {name: others[: rng.randint(1, 4)] for name, others in edges.items()}  # unequal out-degrees too
    ring = dict(zip(names, names[1:] + names[:1], strict=True))
    edges = {name: tuple(dict.fromkeys((ring[name], *others))) for name, others in edges.items()}
    check_connected(edges)
    pace = {name: 10 ** rng.uniform(-0.5, 0.5) for name in names}
    return Averaging(rules, FixedGraph(edges, Online(names), rng), pace, rng, links)


def paper(mass: str, seed: int, links: Links = Links(), peers: int = 100) -> Averaging:  # noqa: B008
    """Return a world like the paper's: 10 random receivers, L = 16, events of about 12 steps of 0.1, a tenth late."""
    rng = Random(seed)
    names = [f"p{i}" for i in range(peers)]
    steps = {name: max(1, round(rng.lognormvariate(2.3, 0.6))) for name in names}
    late = {name: rng.uniform(10, 33) for name in rng.sample(names, peers // 10)}
    online = Online([name for name in names if name not in late])
    rules = Rules(Buffer(limit=16, mass=mass), ByMass(), Whole(receivers=10), join_mass=mass == "drop")
    pace = {name: 0.1 * steps[name] for name in names}
    return Averaging(rules, RandomNeighbours(online, rng), pace, rng, links, online, late)
