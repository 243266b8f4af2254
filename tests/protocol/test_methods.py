"""The protocol side of each method: what waits, what it weighs, who gets which part."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError, ProtocolError
from pushcen.protocol import (
    UNIT,
    Buffer,
    Contact,
    Envelope,
    Equal,
    Fixed,
    Fragments,
    KeepLatest,
    Peer,
    Rules,
    Whole,
    peer_id,
)
from pushcen.protocol.graphs import k_out, ring, small_world, star, swift_coefficients

from .rules import ALONE, EQUAL, LATEST, PARTS


def swift(coefficients, start, every=1):
    return Rules(KeepLatest(tuple(coefficients), start, every), Fixed(coefficients), Whole(0))


def envelope(sender, sequence, payload, part=0):
    return Envelope(f"{sender}/1", "me/1", part, sequence, 0, payload)


def models(event):
    return [(weight / UNIT, env.payload) for weight, env in event.models]


def test_async_dfedavg_is_the_plain_mean_of_the_newest_and_moves_no_mass():
    peer = Peer.found("me", EQUAL)
    for env in (envelope("b", 1, "b1"), envelope("a", 1, "a1"), envelope("b", 2, "b2"), envelope("b", 1, "late")):
        peer.receive(env)
    event = peer.begin()
    assert (event.own, models(event)) == (UNIT, [(1, "a1"), (1, "b2")])
    [out] = peer.finish([Contact(peer_id("a", 1), 1)], "mine")
    assert (out.total, peer.held, peer.waiting) == (0, 0, 0)
    peer.arrived(out, boot=1)
    assert peer.serve("mine", limit=5) == []


@pytest.mark.parametrize("rules", [EQUAL, swift({}, None), LATEST, PARTS, ALONE])
def test_a_method_without_mass_founds_with_none_and_leaves_at_once(rules):
    peer = Peer.found("me", rules)
    older = Peer.restore(peer.save() | {"founded": UNIT, "held": UNIT}, rules)
    for leaver in (peer, older):
        leaver.begin()
        leaver.finish([Contact(peer_id("a", 1), 1)], "mine")
        assert not leaver.gone
        leaver.leave()
        assert leaver.hand_over([Contact(peer_id("a", 1), 1)], "mine") == []
        assert leaver.gone
    assert (peer.founded, older.held) == (0, UNIT)


def test_async_dfedavg_folds_what_the_bound_evicts_at_equal_weight():
    peer = Peer.found("me", Rules(Buffer(limit=1), Equal()))
    peer.receive(envelope("a", 1, "a1"))
    assert peer.receive(envelope("b", 1, "b1")).fold[0] == UNIT
    assert peer.begin().folded == UNIT


def test_a_late_joiner_of_a_method_without_mass_pushes_at_once():
    peer = Peer.join("me", EQUAL)
    assert peer.begin().own == UNIT
    assert len(peer.finish([Contact(peer_id("a", 1), 1)], "mine")) == 1


def test_swift_uses_what_stands_again_and_the_common_start_before():
    peer = Peer.found("me", swift({"a": UNIT // 4, "b": UNIT // 2}, start="start", every=2))
    assert (models(peer.begin()), peer.finish([], "m")) == ([], []), "only every second event averages"
    for expected in (["start", "start"], ["a1", "start"], ["a1", "start"]):
        event = peer.begin()
        assert [payload for _, payload in models(event)] == expected
        assert (event.own / UNIT, [weight for weight, _ in models(event)]) == (0.25, [0.25, 0.5])
        peer.finish([], "m")
        peer.receive(envelope("a", 1, "a1"))
        assert not peer.begin().models
        peer.finish([], "m")


def test_swift_shows_the_same_again_after_an_abort():
    peer = Peer.found("me", swift({"a": UNIT // 4}, start="start", every=2))
    peer.begin()
    peer.finish([], None)
    assert len(peer.begin().models) == 1
    assert peer.abort() == []
    assert len(peer.begin().models) == 1


def test_swifts_random_variant_weighs_equally():
    peer = Peer.found("me", LATEST)
    peer.receive(envelope("a", 1, "a1"))
    for _ in range(2):
        assert models(peer.begin()) == [(1, "a1")]
        peer.finish([], None)


def test_divshare_keeps_the_newest_of_each_sender_and_part():
    peer = Peer.found("me", Rules(Buffer(limit=0), Equal(), Fragments(parts=2, receivers=1)))
    for env in (
        envelope("a", 2, "a2", 2),
        envelope("a", 2, "a1", 1),
        envelope("a", 1, "old", 1),
        envelope("a", 3, "new", 2),
    ):
        peer.receive(env)
    assert sorted((env.part, env.payload) for _, env in peer.begin().models) == [(1, "a1"), (2, "new")]
    chosen = peer.rules.outbox.choose(lambda k: ["a", "b"][:k])
    contacts = {name: Contact(peer_id(name, 1), 1) for name, _ in chosen}
    sent = peer.finish([contacts[name] for name, _ in chosen], "mine", parts=[part for _, part in chosen])
    assert [(env.receiver, env.part) for env in sent] == [("a/1", 1), ("a/1", 2)]
    restored = Peer.restore(json.loads(json.dumps(peer.save())), peer.rules)
    assert not restored.receive(envelope("a", 3, "new", 2)).news


def test_divshare_refuses_a_part_that_goes_to_one_receiver_twice():
    peer = Peer.found("me", PARTS)
    peer.begin()
    with pytest.raises(ProtocolError, match="listed once"):
        peer.finish([Contact(peer_id("a", 1), 1)] * 2, None, parts=[1, 1])


def test_independent_takes_nothing_and_sends_nothing():
    peer = Peer.found("me", ALONE)
    assert not peer.receive(envelope("a", 1, "a1")).news
    assert (peer.begin().models, peer.rules.outbox.choose(lambda k: ["a"])) == ([], [])


@pytest.mark.parametrize("rules", [swift({"a": UNIT // 4}, start="s"), PARTS, ALONE, EQUAL])
def test_a_snapshot_resumes_exactly(rules):
    peer = Peer.found("me", rules)
    peer.receive(envelope("a", 1, "a1"))
    peer.begin()
    peer.receive(envelope("a", 2, "a2"))
    again = Peer.resume(peer.snapshot(), rules)
    assert again.snapshot() == peer.snapshot()
    again.abort(), peer.abort()
    assert again.begin() == peer.begin()


def test_rules_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match="mass needs a Buffer"):
        Rules(outbox=Fragments())
    with pytest.raises(OptionError, match=r"every = 0"):
        KeepLatest(every=0)
    with pytest.raises(OptionError, match="coefficients"):
        Fixed({"a": UNIT + 1})
    with pytest.raises(OptionError, match="1 or more"):
        Fragments(parts=0)
    with pytest.raises(ProtocolError, match="only whole models carry mass"):
        Peer.found("me", EQUAL).receive(Envelope("a/1", "me/1", 0, 1, 5, None))


def names(n):
    return [f"p{i}" for i in range(n)]


@given(st.integers(4, 24), st.integers(0, 1000))
def test_swift_coefficients_are_symmetric_rows_of_at_most_one(n, seed):
    edges = small_world(names(n), 3, 0.5, Random(seed))
    rows = swift_coefficients(edges)
    for name, row in rows.items():
        assert sum(row.values()) <= UNIT
        assert all(weight > 0 and rows[other][name] == weight for other, weight in row.items())
        assert row.keys() == set(edges[name])


def test_swift_coefficients_by_the_published_rule():
    both_ways = {name: (names(6)[i - 1], names(6)[(i + 1) % 6]) for i, name in enumerate(names(6))}
    assert {w for row in swift_coefficients(both_ways).values() for w in row.values()} == {UNIT // 3}
    rows = swift_coefficients(star(names(5)))
    assert {w for row in rows.values() for w in row.values()} == {UNIT // 5}
    path = {"a": ("b",), "b": ("a", "c"), "c": ("b", "d"), "d": ("c",)}
    tailed = swift_coefficients({**path, "c": ("b", "d", "e"), "e": ("c",)})
    # c has degree 3: a quarter to each. b takes it and shares three quarters with a and itself.
    assert tailed["c"] == {"b": UNIT // 4, "d": UNIT // 4, "e": UNIT // 4}
    assert tailed["b"] == {"a": UNIT * 3 // 8, "c": UNIT // 4}
    with pytest.raises(OptionError, match="no way back"):
        swift_coefficients(ring(names(3)))
    with pytest.raises(OptionError, match=r"k = 3"):
        k_out(names(3), 3, Random(0))
