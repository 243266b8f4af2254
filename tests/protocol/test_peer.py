"""What one peer does, and what it refuses."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError, ProtocolError
from pushcen.protocol import (
    UNIT,
    Answer,
    Buffer,
    Contact,
    Envelope,
    Equal,
    Farewell,
    Nobody,
    NoInbox,
    Peer,
    Receipt,
    Rules,
    audit,
    peer_id,
)


def envelope(sender="a/1", sequence=1, total=10, payload=None, receiver="me/1", part=0):
    return Envelope(sender, receiver, part, sequence, total, payload)


@given(
    st.integers(1, 2 * UNIT),
    st.fractions(-5, 5),
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, UNIT), st.fractions(-5, 5))),
)
def test_aggregation_is_the_papers_equations(held, model, received):
    peer = Peer(peer_id("me", 1), held, Rules(Buffer(limit=0)))
    for name, (share, other) in received.items():
        peer.receive(envelope(f"{name}/1", total=share, payload=other))
    event = peer.begin()
    total = event.own + sum(weight for weight, _ in event.models)
    merged = (event.own * model + sum(weight * env.payload for weight, env in event.models)) / Fraction(total)

    S = held + sum(share for share, _ in received.values())
    expected = Fraction(held, S) * model + sum(
        (Fraction(share, S) * other for share, other in received.values()), Fraction(0)
    )
    assert (total, merged) == (S, expected)
    peer.finish([], None)
    assert peer.held == S


@given(st.integers(0, 40), st.integers(0, 12))
def test_a_split_leaves_no_quantum_behind(held, receivers):
    peer = Peer(peer_id("me", 1), held, Rules())
    peer.begin()
    sent = peer.finish([Contact(peer_id(f"r{i}", 1), 1) for i in range(receivers)], None)
    assert peer.held + sum(env.total for env in sent) == held
    assert len(sent) == max(0, min(receivers, held - 1))
    assert len({env.total for env in sent}) <= 1
    assert all(env.total > 0 for env in sent)
    assert held == 0 or peer.held >= max((env.total for env in sent), default=1)


def test_one_client_alone_trains_and_keeps_its_mass():
    peer = Peer.found("alone")
    for _ in range(3):
        assert peer.begin().own == UNIT
        assert peer.finish([], "model") == []
    assert (peer.held, peer.events) == (UNIT, 3)


def test_a_late_joiner_can_bring_mass_if_the_rules_say_so():
    assert Peer.join("late", Rules(join_mass=True)).held == UNIT
    assert Peer.join("late").held == 0


def test_an_old_envelope_changes_nothing_not_even_order():
    peer = Peer.found("me", Rules(Buffer(limit=2)))
    peer.receive(envelope("a/1", 5))
    peer.receive(envelope("b/1", 5))
    before = peer.snapshot()
    for old in (envelope("a/1", 5), envelope("a/1", 4, total=3), envelope("b/1", 1, total=0)):
        assert peer.receive(old) == Receipt(False, None, "old")
    assert peer.snapshot() == before
    fold = peer.receive(envelope("c/1", 1)).fold
    assert fold[1].sender == "a/1", "the oldest arrival makes room"


def test_what_the_bound_evicts_is_folded_with_its_mass():
    peer = Peer.found("me", Rules(Buffer(limit=1)))
    assert peer.receive(envelope("a/1", 1, total=10, payload="old")).fold is None
    assert peer.receive(envelope("a/1", 2, total=15, payload="new")).fold is None
    weight, evicted = peer.receive(envelope("b/1", 1, total=1)).fold
    assert (weight, evicted.payload) == (15, "new")
    assert peer.receive(envelope("a/1", 3, total=20)).fold[0] == 1
    event = peer.begin()
    assert (event.folded, [weight for weight, _ in event.models]) == (16, [5])


def test_drop_destroys_and_says_by_which_rule():
    peer = Peer.found("me", Rules(Buffer(limit=1, mass="drop")))
    for sender, sequence, total in (("a/1", 1, 10), ("a/1", 2, 15), ("b/1", 1, 100), ("b/1", 2, 100)):
        assert peer.receive(envelope(sender, sequence, total)).fold is None
    assert peer.destroyed == {}, "nothing is booked before the commit"
    assert [weight for weight, _ in peer.begin().models] == [100]
    peer.finish([], None)
    assert peer.destroyed == {"replaced": 10, "evicted": 5}
    assert peer.held == UNIT + 100
    report = audit([peer.save()])
    assert (report.destroyed, report.balanced) == ({"replaced": 10, "evicted": 5}, True)


def test_every_model_counts_with_newest_only_off():
    peer = Peer.found("me", Rules(Buffer(limit=2, newest_only=False)))
    receipts = [peer.receive(envelope("a/1", i, total=10 * i, payload=i)) for i in (1, 2, 3)]
    assert receipts[2].fold == (10, envelope("a/1", 1, total=10, payload=1))
    assert [(weight, env.payload) for weight, env in peer.begin().models] == [(10, 2), (10, 3)]
    assert peer.receive(envelope("b/1", 1)).fold is None
    assert [fold[1].payload for fold in peer.abort()] == [2]
    assert peer.waiting == 40


def test_abort_keeps_the_newer_payload_and_adds_the_shares():
    peer = Peer.found("me", Rules(Buffer(limit=1)))
    peer.receive(envelope("a/1", 1, total=10, payload="old"))
    peer.begin()
    peer.receive(envelope("a/1", 2, total=15, payload="new"))
    assert peer.abort() == []
    [(weight, env)] = peer.begin().models
    assert (weight, env.payload) == (15, "new")


def test_abort_folds_what_a_newer_fold_overtook():
    peer = Peer.found("me", Rules(Buffer(limit=1)))
    peer.receive(envelope("a/1", 1, total=10))
    peer.begin()
    peer.receive(envelope("a/1", 2, total=15))
    assert peer.receive(envelope("b/1", 1, total=1)).fold[0] == 5
    assert [weight for weight, _ in peer.abort()] == [10]
    event = peer.begin()
    assert (event.folded, [weight for weight, _ in event.models]) == (15, [1])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (envelope(total=-1), "total -1"),
        (envelope(total=1.5), "total 1.5"),
        (envelope(total=True), "total True"),
        (envelope(sequence=0), "sequence from 1"),
        (envelope(sequence=2**63), "sequence from 1"),
        (envelope(sequence="7"), "'7'"),
        (envelope(part=1), "part 1"),
        (envelope(receiver="me/2"), "not for me/1"),
        (envelope(sender="me/1"), "cannot push to itself"),
        (envelope(part=0.0), "part 0.0"),
        (envelope(sender="nobody"), "must be name/epoch"),
        (envelope(sender=["a/1"]), "must be text"),
        (envelope("known/1", sequence=9, total=4), "total = 4 .*was 5 before"),
    ],
)
@pytest.mark.parametrize("newest_only", [True, False])
def test_a_bad_envelope_is_refused_and_changes_nothing(bad, says, newest_only):
    peer = Peer.found("me", Rules(Buffer(newest_only=newest_only)))
    peer.receive(envelope("known/1", sequence=3, total=5))
    before = peer.snapshot()
    with pytest.raises(ProtocolError, match=says):
        peer.receive(bad)
    assert peer.snapshot() == before


@pytest.mark.parametrize(("who", "boot"), [("b/1", 1.0), ("b/1", 0), ("b/1", True), ("nobody", 1), (["b/1"], 1)])
def test_there_are_no_bad_contacts(who, boot):
    with pytest.raises(ProtocolError, match="must be"):
        Contact(who, boot)


def test_bad_receivers_are_refused_and_change_nothing():
    peer, other = Peer.found("me"), Peer.found("other")
    peer.receive(envelope())
    with pytest.raises(ProtocolError, match="has begun no event"):
        peer.finish([], None)
    peer.begin()
    before = peer.snapshot()
    for receivers, says in (([other.contact] * 2, "listed once"), ([peer.contact], "cannot push to itself")):
        with pytest.raises(ProtocolError, match=says):
            peer.finish(receivers, None)
    with pytest.raises(ProtocolError, match="parts"):
        peer.finish([other.contact], None, parts=[1])
    for receiver in ("b1", "b/1", ("b/1", 1), None):
        with pytest.raises(ProtocolError, match="must be a Contact"):
            peer.finish([other.contact, receiver], None)
    for receivers in ({other.contact}, iter([other.contact]), None, {}):
        with pytest.raises(ProtocolError, match="must be a list each"):
            peer.finish(receivers, None)
    for steps in (2.0, -1, True, "2"):
        with pytest.raises(ProtocolError, match=r"steps = .*must be a whole number"):
            peer.finish([other.contact], None, steps=steps)
    for limit in (1.5, 2**70):
        with pytest.raises(ProtocolError, match=r"limit = .*must be a whole number"):
            peer.serve(None, limit)
    for answer in (Answer("b", 1, 0, 0), Answer("b/1", 1.0, 0, 0), Answer("b/1", 1, 0.5, 0), Answer("b/1", 1, 0, "7")):
        with pytest.raises(ProtocolError, match="must be"):
            peer.hear(answer)
    with pytest.raises(ProtocolError, match=r"credited = 0.5"):
        peer.hear_farewell(Farewell("b/1", {"me/1": 0.5}))
    with pytest.raises(ProtocolError, match=r"credited = .*must be a dict"):
        peer.hear_farewell(Farewell("b/1", ["me/1"]))
    with pytest.raises(ProtocolError, match=r"founded = None"):
        peer.forget("b/1", None)
    with pytest.raises(ProtocolError, match="begun an event already"):
        peer.begin()
    with pytest.raises(ProtocolError, match="finish or abort"):
        peer.leave()
    with pytest.raises(ProtocolError, match="only its sender"):
        peer.failed(envelope())
    with pytest.raises(ProtocolError, match="later than"):
        peer.renewed(1)
    assert peer.snapshot() == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"limit": -1}, "limit = -1"),
        ({"limit": 1.5}, "limit = 1.5"),
        ({"mass": "lose"}, "mass = 'lose': must be one of keep, drop"),
    ],
)
def test_a_bad_policy_is_refused(options, says):
    with pytest.raises(OptionError, match=says):
        Buffer(**options)


@pytest.mark.parametrize(
    ("full_after", "steps", "given"),
    [(0, 1, 0.75), (10, None, 0.75), (10, 10, 0.75), (10, 99, 0.75), (10, 2, 0.15), (10, 1, 0.075), (10, 0, 0.0)],
)
def test_who_trains_little_gives_little_mass_away(full_after, steps, given):
    peer = Peer.found("a", Rules(full_after=full_after))
    peer.begin()
    envelopes = peer.finish([Peer.found(name).contact for name in "bcd"], "model", steps=steps)
    assert len({envelope.total for envelope in envelopes}) == 1
    assert peer.held + sum(envelope.total for envelope in envelopes) == UNIT
    assert peer.held == pytest.approx((1 - given) * UNIT)


def test_the_last_quanta_are_still_shared():
    peer = Peer(peer_id("poor", 1), 3, Rules(full_after=10))
    peer.begin()
    envelopes = peer.finish([Peer.found(name).contact for name in "bcd"], "model", steps=1)
    assert [envelope.total for envelope in envelopes] == [1, 1]
    assert peer.held == 1


@pytest.mark.parametrize("full_after", [-1, 2.5, True])
def test_a_bad_full_after_is_refused(full_after):
    with pytest.raises(OptionError, match=f"full_after = {full_after}: must be a whole number"):
        Rules(full_after=full_after)


def test_a_bad_join_mass_is_refused():
    with pytest.raises(OptionError, match="join_mass = 5"):
        Rules(join_mass=5)


@pytest.mark.parametrize(("name", "epoch"), [("", 1), ("a", -1), ("a", 2**63), ("a", "1"), (7, 1), ("x" * 300, 1)])
def test_a_bad_identity_is_refused(name, epoch):
    with pytest.raises(ProtocolError, match=r"must"):
        Peer.found(name, epoch=epoch)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"held": -1},
        {"held": 1.0},
        {"status": "asleep"},
        {"sent": {"b/1": -5}},
        {"credited": {"b/1": [1]}},
        {"credited": None},
        {"peer": "nobody"},
        {"unsettled": ["stranger/1"]},
    ],
)
def test_a_spoilt_save_is_refused(change):
    with pytest.raises(ProtocolError):
        Peer.restore({**Peer.found("me").save(), **change})


def test_a_restart_keeps_the_epoch_and_counts_a_boot():
    peer = Peer.restore(Peer.found("me", epoch=4).save())
    assert (peer.me, peer.boot, peer.contact) == ("me/4", 2, Contact(peer_id("me", 4), 2))


def test_a_leaver_takes_nothing_in_and_stays_while_it_has_no_heir():
    peer = Peer.found("me")
    peer.leave()
    assert peer.receive(envelope()) == Receipt(False, None, "leaving")
    assert peer.hand_over([], "model") == []
    assert not peer.gone
    with pytest.raises(ProtocolError, match="is leaving"):
        peer.begin()


def test_a_refusal_says_why():
    peer = Peer.found("me")
    peer.receive(envelope("a/2"))
    peer.begin()
    peer.finish([], None)
    peer.forget("b/1", 0)
    assert [peer.receive(envelope(sender)).reason for sender in ("c/1", "a/2", "b/1")] == ["", "old", "forgotten"]
    peer.hear(Answer("a/3", 1, 0, 0))
    assert peer.receive(envelope("a/2", 9)).reason == "epoch"
    peer.leave()
    assert peer.receive(envelope("c/1", 9)).reason == "leaving"
    assert Peer.found("me", Rules(NoInbox(), Equal(), Nobody())).receive(envelope(total=0)).reason == "deaf"


@pytest.mark.parametrize("change", [{"held": UNIT + 1}, {"sent": {"other/1": 7}}, {"destroyed": {"evicted": 1}}])
def test_audit_finds_books_that_do_not_add_up(change):
    peer, other = Peer.found("me"), Peer.found("other")
    assert audit([peer.save(), other.save()]).violations == []
    [wrong] = audit([peer.save() | change, other.save()]).violations
    assert wrong.peer == "me/1"
    assert str(wrong).startswith(f"me/1 was founded with {UNIT} quanta, and its books add up to ")


def test_audit_names_peers_whose_books_are_missing():
    peer, other = Peer.found("me"), Peer.found("other")
    peer.begin()
    peer.finish([other.contact], None)
    report = audit([peer.save()])
    assert report.missing == {"other/1": UNIT // 2}
    assert report.balanced


def test_a_link_whose_answer_can_still_come_is_not_served_again_yet():
    peer, other, third = Peer.found("me"), Peer.found("other"), Peer.found("third")
    peer.begin()
    [first] = peer.finish([other.contact], "old")
    peer.expects = {other.me}
    peer.begin()
    assert [made.receiver for made in peer.finish([third.contact], "new")] == [third.me]
    peer.expects = ()
    assert {made.receiver: made.total for made in peer.serve("newer", 5)} == peer.sent
    peer.arrived(first, other.boot)  # late, and still the whole total of its link
    assert list(peer.unsettled) == [third.me]
