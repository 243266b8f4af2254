"""Which references a client holds, and when it offers one: with nobody in charge, and no tensors."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import ProtocolError
from pushcen.references import HOLDS, ReferenceName, References

names = st.builds(ReferenceName, st.integers(1, 6), st.sampled_from("abcd"))


@given(st.lists(names, max_size=20))
def test_the_newest_few_are_held_in_whatever_order_they_come(came):
    references = References("me", renew_after=8)
    for name in came:
        assert references.hold(name, handle := object()) == (name in references.held)
        assert name not in references.held or references.held[name] is handle or came.count(name) > 1
    assert list(references.held) == sorted(set(came))[-HOLDS:]
    assert references.newest == max(came, default=None)


@given(st.lists(names, min_size=1, max_size=10), names)
def test_a_client_lacks_what_is_newer_than_all_it_has(came, other):
    references = References("me", renew_after=8)
    assert references.lacks(other)
    for name in came:
        references.hold(name, None)
    assert references.lacks(other) == (other > max(came))


@pytest.mark.parametrize("clients", [1, 8, 40, 100, 1000])
def test_few_offer_at_once_however_many_there_are(clients):
    """Everybody counts its own events at its own pace; an offer reaches all others within two events of theirs."""
    dice = Random(clients)
    everybody = [References(f"{i:04}", renew_after=288) for i in range(clients)]
    offers, under_way = [], []
    for event in range(80):
        for name in [name for due, name in under_way if due <= event]:
            for one in everybody:
                one.hold(name, None)
        under_way = [(due, name) for due, name in under_way if due > event]
        for one in everybody:
            if name := one.due(dice, 12):
                one.hold(name, None)
                offers.append(name)
                under_way.append((event + 2, name))
    generations = max(name.generation for name in offers)
    assert 3 <= generations <= 40
    first = sum(name.generation == 1 for name in offers)
    assert first <= 8 + clients / 10, "many at once, while the wait is short"
    assert len(offers) - first <= 8 * generations, f"{len(offers)} offers for {generations} generations"


def test_what_is_newer_starts_the_wait_again():
    one, tails = References("a", renew_after=60), Tails()
    one.hold(ReferenceName(2, "b"), None)
    assert [one.due(tails, 10) for _ in range(5)] == [None] * 5
    one.hold(ReferenceName(3, "b"), None)
    assert [one.due(tails, 10) for _ in range(6)] == [None] * 5 + [ReferenceName(4, "a")]


def test_the_first_two_come_sooner():
    one, tails, events = References("a", renew_after=240), Tails(), []
    for event in range(1, 73):
        if name := one.due(tails, 10):
            one.hold(name, None)
            events.append(event)
    assert events == [12, 30, 54]


class Tails(Random):
    """A coin that never falls heads."""

    def random(self):
        return 0.9


def test_what_was_saved_goes_on_the_same(tmp_path):
    one, dice = References("a", renew_after=90), Random(5)
    one.hold(ReferenceName(3, "b"), "three")
    one.due(dice, 12)
    other, twin = References("a", renew_after=90), Random()
    other.restore(json.loads(json.dumps(one.save())))
    twin.setstate(dice.getstate())
    assert other.held == one.held
    assert [one.due(dice, 12) for _ in range(30)] == [other.due(twin, 12) for _ in range(30)]


@pytest.mark.parametrize("generation", [0, -1, 2**62])
def test_a_generation_that_nobody_can_follow_is_refused(generation):
    one = References("a", renew_after=4)
    with pytest.raises(ProtocolError, match="generation"):
        one.hold(ReferenceName(generation, "b"), None)
    assert not one.held
