"""Which references a peer keeps among members that need not mean well."""

import json
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pushcen.references import HOLDS, ReferenceName
from pushcen.runtime.references import AHEAD, FIRST, ServedReferences

names = st.builds(ReferenceName, st.integers(1, 6), st.sampled_from("abcd"))
steps = st.lists(st.one_of(names, st.none()), max_size=30)


def name(generation, owner):
    return ReferenceName(generation, owner)


@given(steps, st.randoms(use_true_random=False))
def test_what_was_used_last_is_never_dropped_and_few_are_held(came, dice):
    """None: a message is encoded, to one of those that are held or to the start."""
    references = ServedReferences("me", renew_after=8)
    for one in came:
        if one is None:
            some = dice.sample(list(references.held), dice.randint(0, len(references.held)))
            references.served(some[0] if some else None, some)
        else:
            keeps = one in references.held or references.keeps(one)
            assert references.hold(one, None) == keeps == (one in references.held)
        assert references.used is None or references.used in references.held
        assert list(references.held) == sorted(references.held)
        assert len(references.held) <= HOLDS


def test_what_was_passed_over_goes_first_however_new_it_is():
    references = ServedReferences("me", renew_after=8)
    for one in (name(2, "a"), name(3, "b"), name(900, "eve")):
        references.hold(one, None)
    references.served(name(2, "a"), [name(2, "a"), name(900, "eve")])
    assert references.newest == name(3, "b")
    assert references.hold(name(4, "c"), None)
    assert list(references.held) == [name(2, "a"), name(3, "b"), name(4, "c")]


def test_one_owner_pushes_out_its_own_only():
    references = ServedReferences("me", renew_after=8)
    references.hold(name(2, "a"), None)
    references.hold(name(3, "b"), None)
    for generation in range(900, 950):
        assert references.hold(name(generation, "eve"), None)
    assert list(references.held) == [name(2, "a"), name(3, "b"), name(949, "eve")]


def test_what_is_of_no_use_puts_an_offer_off_for_a_while_and_leads_its_number_nowhere():
    references, dice, events = ServedReferences("me", renew_after=48), Random(0), 0
    references.hold(name(7, "a"), None)
    references.served(name(7, "a"), [name(7, "a")])
    offer = None
    while offer is None:
        references.hold(name(900 + events, "eve"), None)
        offer = references.due(dice, 12)
        references.served(name(7, "a"), list(references.held))
        events += 1
    assert (offer, events) == (name(8, "me"), 16)


def test_a_peer_offers_no_name_twice():
    references, dice, offers = ServedReferences("me", renew_after=24), Random(0), []
    for _ in range(40):
        if offer := references.due(dice, 12):
            offers.append(offer)
            references.offered = offer.generation
            references.hold(offer, None)
            references.served(None, [offer])  # it is of no use to itself
    assert len(offers) > 10
    assert len(set(offers)) == len(offers)


def test_numbers_cannot_run_out():
    references = ServedReferences("me", renew_after=2)
    assert references.follows(name(FIRST, "a"))
    assert not references.follows(name(FIRST + 1, "a"))
    references.hold(name(5, "a"), None)
    references.served(name(5, "a"), [name(5, "a")])
    assert references.follows(name(5 + AHEAD, "eve"))
    references.hold(name(5 + AHEAD, "eve"), None)
    assert not references.follows(name(6 + AHEAD, "eve"))  # only what was used counts


def test_what_was_saved_goes_on_the_same():
    one, dice = ServedReferences("a", renew_after=90), Random(5)
    for generation, owner in ((1, "b"), (2, "c"), (9, "eve")):
        one.hold(name(generation, owner), owner)
    one.served(name(2, "c"), list(one.held))
    one.due(dice, 12)
    one.offered = 4
    other, twin = ServedReferences("a", renew_after=90), Random()
    other.restore(json.loads(json.dumps(one.save())))
    twin.setstate(dice.getstate())
    assert (other.held, other.used, other.newest, other.last) == (one.held, one.used, one.newest, one.last)
    assert [one.due(dice, 12) for _ in range(50)] == [other.due(twin, 12) for _ in range(50)]
    assert one.hold(name(3, "d"), "d") == other.hold(name(3, "d"), "d")
    assert one.held == other.held
