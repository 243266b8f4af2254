"""Neighbour policies against slow versions of them: priorities and gains recomputed from all that ever happened."""

import json
from collections import Counter
from random import Random

import pytest

from pushcen.errors import OptionError
from pushcen.protocol import ByBandit, ByPriority

PEERS = [f"p{number}" for number in range(12)]


def distance(one, other):
    return abs(PEERS.index(one) - PEERS.index(other)) / len(PEERS)


@pytest.mark.parametrize("by_data", [0.0, 0.25, 0.7, 1.0])
def test_those_of_the_highest_priority_are_picked_by_a_book_of_every_push(by_data):
    policy, draw, book = ByPriority(distance, by_data, Random(1)), Random(2), []
    for _ in range(400):
        me = draw.choice(PEERS)
        others, k = draw.sample([peer for peer in PEERS if peer != me], draw.randint(1, 11)), draw.randint(1, 4)
        mine = [chosen for who, chosen in book if who == me]
        ages = {}
        for other in others:
            pushed = [at for at, chosen in enumerate(mine, 1) if other in chosen]
            ages[other] = len(mine) + 1 - max(pushed, default=0)
        priority = {
            other: by_data * distance(me, other) + (1 - by_data) * ages[other] / max(ages.values()) for other in others
        }
        chosen = policy.pick(me, others, k)
        assert len(set(chosen)) == len(chosen) == min(k, len(others))
        best = sorted(priority.values(), reverse=True)[: len(chosen)]
        assert sorted((priority[other] for other in chosen), reverse=True) == pytest.approx(best, abs=1e-12)
        book.append((me, chosen))


def test_by_age_alone_everybody_has_a_turn_before_anybody_has_two():
    policy, others = ByPriority(distance, 0.0, Random(3)), PEERS[1:]
    pushes = [policy.pick("p0", others, 2) for _ in range(11)]
    assert Counter(other for chosen in pushes for other in chosen) == dict.fromkeys(others, 2)


def test_below_one_half_nobody_is_left_out_for_good_whoever_has_the_other_data():
    policy = ByPriority(lambda _, other: float(other < "p3"), 0.4, Random(3))
    pushes = Counter(other for _ in range(200) for other in policy.pick("me", PEERS, 2))
    assert min(pushes.values()) >= 5
    assert min(pushes[other] for other in PEERS if other < "p3") > max(
        pushes[other] for other in PEERS if other >= "p3"
    )


def expectation(gains):
    """The plain mean of up to eight gains; from then on each new one counts an eighth."""
    mean = sum(gains[:8]) / max(len(gains[:8]), 1)
    for gain in gains[8:]:
        mean = 7 / 8 * mean + gain / 8
    return mean


def test_those_that_helped_most_are_picked_by_a_book_of_every_gain():
    policy, draw, book = ByBandit(0.0, Random(1)), Random(2), {}
    for _ in range(600):
        me = draw.choice(PEERS[:3])
        others = [peer for peer in PEERS if peer != me]
        senders, gain = draw.choices(others, k=3), draw.uniform(-1, 1)  # a sender of two parts counts once
        policy.reward(me, senders, gain)
        for sender in set(senders):
            book.setdefault((me, sender), []).append(gain)
        expected = {other: expectation(book.get((me, other), [])) for other in others}
        chosen = policy.pick(me, others, 4)
        best = sorted(expected.values(), reverse=True)[:4]
        assert sorted((expected[other] for other in chosen), reverse=True) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("explore", "often"), [(0.0, 1.0), (0.5, 0.5 + 0.5 / 11), (1.0, 1 / 11)])
def test_somebody_at_random_is_picked_as_often_as_is_said(explore, often):
    policy = ByBandit(explore, Random(5))
    policy.reward("p0", ["p7"], 1.0)
    count = Counter(policy.pick("p0", PEERS[1:], 1)[0] for _ in range(4000))
    assert count["p7"] / 4000 == pytest.approx(often, abs=0.03)
    rest = [count[other] for other in PEERS[1:] if other != "p7"]
    assert max(rest) <= 2 * min(rest) + 5


@pytest.mark.parametrize("make", [lambda rng: ByPriority(distance, 0.3, rng), lambda rng: ByBandit(0.3, rng)])
def test_a_policy_that_was_saved_as_json_goes_on_as_it_would_have(make):
    rng = Random(1)
    policy = make(rng)

    def go_on(policy, steps):
        draw = Random(steps)
        for _ in range(steps):
            me = draw.choice(PEERS)
            if isinstance(policy, ByBandit):
                policy.reward(me, draw.sample(PEERS, 2), draw.uniform(-1, 1))
            yield policy.pick(me, [peer for peer in PEERS if peer != me], 3)

    list(go_on(policy, 50))
    again = Random()
    again.setstate(rng.getstate())
    other = make(again)
    other.restore(json.loads(json.dumps(policy.save())))
    assert list(go_on(policy, 60)) == list(go_on(other, 60))


def test_whoever_is_asked_for_all_gives_all_and_nonsense_is_refused():
    for policy in (ByPriority(distance, 0.5, Random(1)), ByBandit(0.5, Random(1))):
        assert policy.pick("p0", PEERS[1:4], 0) == PEERS[1:4]
        assert policy.pick("p0", PEERS[1:4], 9) == PEERS[1:4]
        assert policy.pick("p0", [], 3) == []
    with pytest.raises(OptionError, match=r"by_data = 1\.5"):
        ByPriority(distance, 1.5, Random(1))
    with pytest.raises(OptionError, match="explore = -1"):
        ByBandit(-1, Random(1))
