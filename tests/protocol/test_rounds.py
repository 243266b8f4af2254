"""Rounds: an event waits for one envelope of each neighbour, and takes no more than that."""

import json
from random import Random

import pytest

from pushcen.errors import ProtocolError
from pushcen.protocol import Envelope, Equal, Fixed, Peer, Rounds, Rules, Whole, name_of, peer_id
from pushcen.protocol.graphs import metropolis_weights, small_world

RING = {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}


def peers(edges):
    return {
        name: Peer.found(name, Rules(Rounds(tuple(others)), Fixed(metropolis_weights(edges, name)), Whole(0)))
        for name, others in edges.items()
    }


def event(everybody, edges, name, payload):
    """Return what an event took, and the envelopes that it made."""
    peer = everybody[name]
    taken = peer.begin()
    return taken, peer.finish([everybody[other].contact for other in edges[name]], payload)


def deliver(everybody, envelopes):
    for envelope in envelopes:
        assert everybody[name_of(envelope.receiver)].receive(envelope).news


def test_the_first_event_takes_nothing_and_the_next_waits_for_every_neighbour():
    everybody = peers(RING)
    assert all(peer.ready for peer in everybody.values())
    sent = {name: event(everybody, RING, name, f"{name} 1")[1] for name in RING}
    a = everybody["a"]
    assert not a.ready
    deliver(everybody, [envelope for envelope in sent["b"] if name_of(envelope.receiver) == "a"])
    assert not a.ready
    with pytest.raises(ProtocolError, match="not all neighbours"):
        a.begin()
    deliver(everybody, [envelope for envelope in sent["c"] if name_of(envelope.receiver) == "a"])
    assert a.ready
    assert [envelope.payload for _, envelope in a.begin().models] == ["b 1", "c 1"]


def test_a_neighbour_that_is_a_round_ahead_is_not_merged_before_its_time():
    everybody = peers(RING)
    for name in RING:
        deliver(everybody, event(everybody, RING, name, f"{name} 1")[1])
    deliver(everybody, event(everybody, RING, "b", "b 2")[1])
    deliver(everybody, event(everybody, RING, "c", "c 2")[1])
    assert not everybody["b"].ready, "a has not sent its second"
    taken, envelopes = event(everybody, RING, "a", "a 2")
    assert [envelope.payload for _, envelope in taken.models] == ["b 1", "c 1"]
    deliver(everybody, envelopes)
    taken, _ = event(everybody, RING, "a", "a 3")
    assert [envelope.payload for _, envelope in taken.models] == ["b 2", "c 2"]


@pytest.mark.parametrize("seed", range(5))
def test_whoever_is_ready_whenever_rounds_are_kept_and_nobody_waits_for_ever(seed):
    """Saved and resumed, begun and broken off at random, each event of round r merges round r - 1 of each neighbour."""
    draw = Random(seed)
    edges = small_world([str(i) for i in range(9)], 4, 0.3, draw)
    everybody, rounds, under_way = peers(edges), dict.fromkeys(edges, 0), []
    for _ in range(900):
        ready = [name for name in edges if everybody[name].ready]
        if under_way and (not ready or draw.random() < 0.7):
            link = draw.choice([(e.sender, e.receiver) for e in under_way])  # in order on each link
            envelope = next(e for e in under_way if (e.sender, e.receiver) == link)
            under_way.remove(envelope)
            deliver(everybody, [envelope])
            continue
        name = draw.choice(ready)
        if draw.random() < 0.3:
            everybody[name].begin()
            assert everybody[name].abort() == []
        if draw.random() < 0.3:
            everybody[name] = Peer.resume(json.loads(json.dumps(everybody[name].snapshot())), everybody[name].rules)
        taken, envelopes = event(everybody, edges, name, rounds[name] + 1)
        assert [envelope.payload for _, envelope in taken.models] == [rounds[name]] * (
            len(edges[name]) * bool(rounds[name])
        )
        rounds[name] += 1
        under_way += envelopes
    assert min(rounds.values()) > 10
    assert all(abs(rounds[name] - rounds[other]) <= 1 for name in edges for other in edges[name])


def test_who_is_no_neighbour_is_not_heard_and_who_has_none_never_waits():
    peer = peers({**RING, "d": ()})["a"]
    receipt = peer.receive(Envelope(peer_id("d", 1), peer.me, 0, 1, 0, "d 1"))
    assert (receipt.news, receipt.reason) == (False, "deaf")
    alone = Peer.found("x", Rules(Rounds(()), Equal(), Whole(0)))
    for _ in range(3):
        assert alone.ready
        assert alone.begin().models == []
        alone.finish([], "x")


@pytest.mark.parametrize("state", [[], [[], 1, 2], [[[], {}, [0, 0, 0, 0], None], -1]])
def test_a_damaged_mailbox_is_refused(state):
    peer = peers(RING)["a"]
    with pytest.raises(ProtocolError):
        Peer.resume({**peer.snapshot(), "mailbox": state}, peer.rules)
