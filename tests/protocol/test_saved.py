"""What was saved and then spoilt: one clear error, or a peer that works."""

import contextlib
import copy
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import ProtocolError
from pushcen.protocol import Buffer, Contact, Envelope, Equal, Peer, Rules, audit

from .rules import LATEST, PARTS

RULES = {
    "newest": Rules(Buffer(limit=2)),
    "drop": Rules(Buffer(limit=2, mass="drop")),
    "every": Rules(Buffer(limit=2, newest_only=False)),
    "plain": Rules(Buffer(limit=2), Equal()),
    "standing": LATEST,
    "parts": PARTS,
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**63, 2**64, 2**200, 0.5, float("nan"), "", "a", "a/1", "b/2", "me/1", "a/1#2", "a/1#x", [], {}]),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["a/1", "x", ""]), st.integers(-1, 2), max_size=2),
)


def used(rules, seed):
    """A peer that has been through something, in the middle of an event."""
    rng, mass = Random(seed), rules.weights.moves_mass
    peer = Peer.found("me", rules)
    totals = dict.fromkeys("abcd", 0)
    for at in range(1, 25):
        name = rng.choice("abcd")
        totals[name] += rng.choice([0, 5]) if mass else 0
        part = rng.choice([1, 2]) if rules.outbox == RULES["parts"].outbox else 0
        peer.receive(Envelope(f"{name}/{1 + at // 20}", "me/1", part, at, totals[name] if at < 20 else 0, None))
        if at % 7 == 0:
            peer.begin()
            envelopes = peer.finish([Contact(f"{name}/{1 + at // 20}", rng.choice([1, 2]))], None)
            for envelope in envelopes[:1]:
                peer.arrived(envelope, rng.choice([1, 2, 3]))
    peer.forget("x/1", 7)
    peer.begin()
    peer.receive(Envelope("a/2", "me/1", 0, 99, 0, None))
    return peer


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def spoilt(state, data):
    """The same with one thing changed, taken away or named otherwise, somewhere inside."""
    state = copy.deepcopy(state)
    path = data.draw(st.sampled_from([path for path in places(state) if path]))
    inside = state
    for key in path[:-1]:
        inside = inside[key]
    how = data.draw(st.sampled_from(["change", "change", "take away", "rename"]))
    if how == "change" or isinstance(inside, list):
        inside[path[-1]] = data.draw(ODD)
    else:
        value = inside.pop(path[-1])
        if how == "rename":
            inside[data.draw(st.sampled_from(["a/1", "me/1", "#", "x", "a/1#3", 7]))] = value
    return state


def goes_on(peer):
    """Let a peer live on; whatever it refuses, it says so."""
    for act in (
        peer.abort,
        lambda: peer.receive(Envelope("a/2", "me/1", 0, 2**40, 2**50 if peer.rules.weights.moves_mass else 0, None)),
        peer.begin,
        lambda: peer.finish([Contact("e/1", 1)], None),
        lambda: peer.serve(None, 9),
        lambda: peer.latest_epoch("a"),
        peer.leave,
        lambda: peer.hand_over([Contact("f/1", 1)], None),
        lambda: peer.gone,
        lambda: audit([peer.save()]),
        peer.snapshot,
    ):
        with contextlib.suppress(ProtocolError):
            act()


@pytest.mark.parametrize("rules", RULES)
@given(data=st.data())
def test_a_spoilt_ledger_is_refused_or_works(rules, data):
    state = json.loads(json.dumps(used(RULES[rules], data.draw(st.integers(0, 9))).save()))
    try:
        peer = Peer.restore(spoilt(state, data), RULES[rules])
    except ProtocolError:
        return
    goes_on(peer)


@pytest.mark.parametrize("rules", RULES)
@given(data=st.data())
def test_a_spoilt_snapshot_is_refused_or_works(rules, data):
    state = json.loads(json.dumps(used(RULES[rules], data.draw(st.integers(0, 9))).snapshot()))
    try:
        peer = Peer.resume(spoilt(state, data), RULES[rules])
    except ProtocolError:
        return
    goes_on(peer)


@pytest.mark.parametrize("rules", RULES)
def test_what_was_saved_is_restored_as_it_was(rules):
    peer = used(RULES[rules], 3)
    again = Peer.resume(json.loads(json.dumps(peer.snapshot())), RULES[rules])
    assert json.dumps(again.snapshot()) == json.dumps(peer.snapshot())
    assert Peer.restore(peer.save(), RULES[rules]).save() == peer.save() | {"boot": 2}


def test_a_ledger_of_an_earlier_version_is_restored():
    state = used(RULES["newest"], 1).save()
    del state["past"]
    peer = Peer.restore(state, RULES["newest"])
    assert peer.save() == state | {"past": {}, "boot": 2}


@pytest.mark.parametrize("rules", ["newest", "every"])
def test_a_top_whose_sequence_nobody_can_have_is_refused(rules):
    peer = Peer.found("me", RULES[rules])
    peer.receive(Envelope("a/1", "me/1", 0, 1, 5, None))
    peer.begin()
    peer.receive(Envelope("a/1", "me/1", 0, 2, 5, None))  # served again: only its top is noted
    text = json.dumps(peer.snapshot())
    top = 5 << 64 | 2
    assert f'"a/1": {top}' in text
    with pytest.raises(ProtocolError, match=r"a/1.*sequence"):
        Peer.resume(json.loads(text.replace(f'"a/1": {top}', f'"a/1": {top | 2**63}')), RULES[rules])
