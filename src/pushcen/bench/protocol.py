"""How fast the protocol core is, how much a link weighs, and how well a bounded view mixes."""

import gc
import time
import tracemalloc
from random import Random
from typing import Any

from pushcen.bench.averaging import Averaging
from pushcen.protocol import (
    UNIT,
    Answer,
    BoundedView,
    Buffer,
    ByMass,
    Contact,
    NeighbourChoice,
    Online,
    Peer,
    RandomNeighbours,
    Rules,
    Whole,
    peer_id,
)

RECEIVERS = 10
LIMIT = 16
SIZES = (1_000, 10_000, 100_000)
LINKS = (1_000, 8_000)
EVENTS = RECEIVERS + 2  # of one compute event: collect, split, and a delivery to each receiver


class ManyPeers:
    """Peers on a network where everything arrives at once; there are no payloads."""

    def __init__(self, peers: int, view: bool = True, seed: int = 0) -> None:
        self.rng = Random(seed)
        rules = Rules(Buffer(limit=LIMIT), ByMass(), Whole(RECEIVERS))
        self.peers = [Peer.found(f"p{i}", rules) for i in range(peers)]
        online = Online(self.peers)
        self.neighbours: NeighbourChoice[Peer] = (
            BoundedView(online, self.rng) if view else RandomNeighbours(online, self.rng)
        )

    def push(self, peer: Peer) -> None:
        """Collect, split and push at one peer; every envelope is delivered and answered."""
        peer.begin()
        receivers = self.neighbours.draw(peer, RECEIVERS)
        for envelope, receiver in zip(peer.finish([r.contact for r in receivers], None), receivers, strict=True):
            receiver.receive(envelope)
            peer.arrived(envelope, receiver.boot)

    def run(self, events: int) -> None:
        """Push at so many random peers."""
        random, peers, size = self.rng.random, self.peers, len(self.peers)
        for _ in range(events):
            self.push(peers[int(random() * size)])

    def links(self) -> int:
        """Return how many links are in use."""
        return sum(len(peer.sent) for peer in self.peers)


def speed(peers: int, events: int, rounds: int = 20) -> tuple[float, float]:
    """Measure protocol events per CPU second, the best of some rounds, and links per peer."""
    world = ManyPeers(peers)
    for peer in world.peers * 2:
        world.push(peer)
    gc.collect()
    gc.disable()  # nothing here is cyclic
    times = []
    for _ in range(rounds):
        start = time.process_time()
        world.run(events)
        times.append(time.process_time() - start)
    gc.enable()
    if sum(peer.held + peer.waiting for peer in world.peers) != peers * UNIT:
        raise AssertionError("mass was lost or made")
    return events * EVENTS / min(times), world.links() / peers


def bytes_per_link(peers: int = 300, pushes: int = 300) -> float:
    """Measure what a link costs, both of its ends together, once mailboxes are empty."""
    tracemalloc.start()
    world = ManyPeers(peers)
    bare = tracemalloc.get_traced_memory()[0]
    world.run(peers * pushes)
    for peer in world.peers:
        peer.begin()
        peer.finish([], None)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - bare
    tracemalloc.stop()
    return used / world.links()


def microseconds_per_link(links: int, rounds: int = 5) -> dict[str, float]:
    """Measure what each of many links costs, in CPU time, the best of some rounds.

    All receivers have restarted, and half of them in a later epoch. `push` is one push to all of them, `hear` an answer
    of each that leaves its link unsettled, `leave` a farewell, a hand-over to all, and their confirmation.
    """
    best = dict.fromkeys(("push", "hear", "leave"), float("inf"))
    for _ in range(rounds):
        peer = Peer.found("me")
        for epoch in (1, 2):
            contacts = [Contact(peer_id(f"p{i}", epoch if i % 2 else 1), 1 + epoch) for i in range(links)]
            peer.begin()
            start = time.process_time()
            peer.finish(contacts, None)
            pushed = time.process_time()
            for who, boot in contacts:
                peer.hear(Answer(who, boot, 0, 0))
            heard = time.process_time()
        peer.leave()
        peer.hand_over(contacts, None)
        for who, boot in contacts:
            peer.hear(Answer(who, boot, peer.sent[who], peer.sent[who]))
        for who in [who for who in peer.sent if peer.is_over(who)]:
            peer.forget(who, 0)
        if not peer.gone:
            raise AssertionError("a peer that has given everything away is not gone")
        times = (pushed - start, heard - pushed, time.process_time() - heard)
        best = {what: min(best[what], took / links * 1e6) for what, took in zip(best, times, strict=True)}
    return best


def spread(view: bool, peers: int = 1000, pushes: int = 8, seed: int = 0) -> float:
    """Measure how far numbers that start with standard deviation 1 are apart, after so many pushes by each peer."""
    rng = Random(seed)
    pace = {f"p{i}": 1.0 for i in range(peers)}
    online = Online(pace)
    neighbours: NeighbourChoice[str] = BoundedView(online, rng) if view else RandomNeighbours(online, rng)
    rules = Rules(Buffer(limit=LIMIT), ByMass(), Whole(RECEIVERS))
    return Averaging(rules, neighbours, pace, rng).run(pushes, every=pushes).spread


def run(events: int = 15_000) -> dict[str, Any]:
    """Measure everything. docs/protocol.md explains the keys."""
    speeds = {peers: speed(peers, events) for peers in SIZES}
    small, middle, large = SIZES
    few, many = (microseconds_per_link(links) for links in LINKS)
    return {
        "peers": middle,
        "receivers": RECEIVERS,
        "mailbox_limit": LIMIT,
        "events_per_second": round(speeds[middle][0]),
        "events_per_second_by_peers": {str(peers): round(rate) for peers, (rate, _) in speeds.items()},
        "time_per_event_growth": round(speeds[small][0] / speeds[large][0], 2),
        "links_per_peer_by_peers": {str(peers): round(links, 1) for peers, (_, links) in speeds.items()},
        "microseconds_per_link": {what: round(took, 2) for what, took in many.items()},
        "time_per_link_growth": {what: round(many[what] / few[what], 2) for what in few},
        "bytes_per_link": round(bytes_per_link(), 1),
        "spread_after_8_pushes": {"afresh": spread(view=False), "view": spread(view=True)},
    }
