"""Exchanges: every question is answered once, every answer counts once, whatever the network does and who restarts."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError, ProtocolError
from pushcen.protocol import ANSWER, Ask, AtOnce, ByMass, Envelope, Equal, Peer, Rules, answer_to, name_of

RULES = Rules(AtOnce(), Equal(), Ask())


def pair():
    return Peer.found("a", RULES), Peer.found("b", RULES)


def ask(one, *others):
    one.begin()
    return one.finish([other.contact for other in others], f"{one.me} asks")


def test_a_question_is_answered_once_and_an_answer_taken_once():
    a, b = pair()
    [question] = ask(a, b)
    answer = answer_to(question, "d")
    assert [b.receive(question).news for _ in range(3)] == [True, False, False]
    assert [a.receive(answer).news for _ in range(3)] == [True, False, False]
    assert (a.peek(), b.peek(), a.waiting, b.waiting) == ([], [], 0, 0)


def test_nothing_waits_for_an_event():
    a, b = pair()
    [question] = ask(a, b)
    b.begin()
    assert b.receive(question).news  # while b computes
    b.finish([], None)
    assert b.begin().models == []
    b.abort()
    assert not b.receive(question).news


def test_what_was_overtaken_counts_as_lost():
    a, b = pair()
    [first], [second] = ask(a, b), ask(a, b)
    assert b.receive(second).news
    assert not b.receive(first).news
    assert a.receive(answer_to(second, "d")).news
    assert not a.receive(answer_to(first, "d")).news


def test_copies_are_refused_after_a_restart_too():
    a, b = pair()
    [question] = ask(a, b)
    answer = answer_to(question, "d")
    b.receive(question)
    a.receive(answer)
    a, b = Peer.restore(a.save(), RULES), Peer.restore(b.save(), RULES)
    assert not b.receive(question).news
    assert not a.receive(answer).news
    again = Peer.resume(b.snapshot(), RULES)
    assert not again.receive(question).news


def test_a_new_epoch_hears_no_answer_of_the_one_before_and_answers_nobody_that_it_knows_to_be_over():
    a, b = pair()
    [question] = ask(a, b)
    renewed = a.renewed(2)
    with pytest.raises(ProtocolError):
        renewed.receive(answer_to(question, "d"))  # it is for a/1
    b.receive(question)
    b.receive(ask(renewed, b)[0])
    b.begin()
    b.finish([renewed.contact], None)
    late = question._replace(sequence=9)
    assert b.receive(late).reason == "epoch"


def test_who_leaves_answers_nobody():
    a, b = pair()
    [question] = ask(a, b)
    b.leave()
    assert b.receive(question).reason == "leaving"
    assert b.gone  # it has no mass to hand over


@pytest.mark.parametrize(
    "wrong",
    [{"total": 5}, {"part": -1}, {"sequence": 0}, {"sequence": 2**63}, {"receiver": "z/1"}, {"sequence": 1.5}],
    ids=str,
)
def test_what_is_malformed_is_refused_and_changes_nothing(wrong):
    a, b = pair()
    [question] = ask(a, b)
    before = b.snapshot()
    with pytest.raises(ProtocolError):
        b.receive(question._replace(**wrong))
    assert b.snapshot() == before


def test_other_parts_are_no_part_of_an_exchange():
    a, b = pair()
    [question] = ask(a, b)
    for part in (1, 7, ANSWER - 1, ANSWER + 1):
        assert not b.receive(question._replace(part=part)).news
    assert b.credited == {}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4)), max_size=60), st.integers())
def test_nobody_moves_twice_for_one_question_whatever_arrives_when(steps, seed):
    """Three peers, a network that loses, copies, reorders; each move is counted by the question that it is for."""
    peers = [Peer.found(name, RULES) for name in "abc"]
    by_name, under_way, moves = {name_of(peer.me): peer for peer in peers}, [], []
    draw = Random(seed)
    for one, other, deliver in steps:
        if one != other:
            under_way += ask(peers[one], peers[other])
        for _ in range(min(deliver, len(under_way))):
            envelope = draw.choice(under_way)
            if draw.random() < 0.5:
                under_way.remove(envelope)
            if draw.random() < 0.3:
                continue
            receiver = by_name[name_of(envelope.receiver)]
            if receiver.receive(envelope).news:
                asker = envelope.receiver if envelope.part else envelope.sender
                moves.append((asker, envelope.sequence, receiver.me))
                if not envelope.part:
                    under_way.append(answer_to(envelope, "d"))
    assert len(moves) == len(set(moves))
    heard = [(asker, number) for asker, number, who in moves if who == asker]
    answered = [(asker, number) for asker, number, who in moves if who != asker]
    assert set(heard) <= set(answered)


def test_who_is_asked_is_drawn_by_chance():
    contacts = [Peer.found(name, RULES).contact for name in "abcdefgh"]
    assert Ask().drawn(contacts, Random(1)) == contacts
    draw = Random(1)
    some = [len(Ask(0, chance=0.25).drawn(contacts, draw)) for _ in range(500)]
    assert 1.8 < sum(some) / 500 < 2.2
    assert {0, 1, 2, 3, 4} <= set(some)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"receivers": -1}, "receivers = -1"),
        ({"chance": 1.1}, "chance = 1.1"),
        ({"share": -0.5}, "share = -0.5"),
        ({"shares": {"b": 2.0}}, "share = 2.0"),
        ({"mixing": float("nan")}, "mixing = nan"),
    ],
)
def test_rules_that_cannot_be_are_refused(options, told):
    with pytest.raises(OptionError, match=told):
        Ask(**options)


def test_an_exchange_moves_no_mass():
    with pytest.raises(OptionError, match="mass needs a Buffer as inbox"):
        Rules(AtOnce(), ByMass(), Ask())
    a, b = pair()
    assert a.held == a.founded == 0
    assert ask(a, b)[0] == Envelope(a.me, b.me, 0, 1, 0, "a/1 asks")
