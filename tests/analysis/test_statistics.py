"""Intervals and tests agree with scipy, keep what they promise, and do not depend on what must not matter."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pushcen.analysis.statistics import best_set, flip_test, holm, interval, needed, paired, paired_by

NUMBERS = st.floats(-100, 100).map(lambda value: round(value, 3))


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_the_paired_interval_is_scipys(seeds):
    rng = np.random.default_rng(seeds)
    ours, theirs = rng.normal(1, 1, seeds), rng.normal(0, 1, seeds)
    low, high = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    found = paired(list(ours), list(theirs))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.contains(0) == (stats.ttest_rel(ours, theirs).pvalue >= 0.05)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_nineteen_of_twenty_intervals_contain_the_true_difference(seeds):
    rng, tries = np.random.default_rng(1), 2000
    worlds = rng.normal(0, 5, (tries, seeds))  # what a seed does to both, which pairing takes away
    ours, theirs = worlds + rng.normal(2, 1, worlds.shape), worlds + rng.normal(0, 1, worlds.shape)
    held = sum(paired(list(a), list(b)).contains(2) for a, b in zip(ours, theirs, strict=True))
    assert abs(held / tries - 0.95) < 4 * (0.95 * 0.05 / tries) ** 0.5


def test_pairs_are_those_that_both_have():
    assert paired_by({0: 1.0, 1: 3.0, 7: 9.0}, {1: 1.0, 0: 0.0, 5: 2.0}) == paired([1.0, 3.0], [0.0, 1.0])
    assert paired_by({0: 1.0}, {1: 1.0}) is None


@pytest.mark.parametrize("count", [6, 9, 12])
def test_flips_of_all_signs_are_scipys_permutation_test(count):
    values = np.random.default_rng(count).normal(0.5, 1, count)
    exact = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert flip_test(list(values)) == pytest.approx(exact.pvalue)


def test_flips_are_counted_as_by_hand():
    assert flip_test([1.0] * 6) == 2 / 64  # all plus, all minus
    values = [3.0, 1.0, 1.0, 1.0, 1.0, -1.0]
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in itertools.product((1, -1), repeat=6)
    ]
    assert flip_test(values) == sum(one >= 6 for one in sums) / 64
    assert flip_test([0.0] * 8) == 1.0


def test_there_is_no_p_value_below_six_seeds():
    assert flip_test([1.0, 1.1, 0.9, 1.0, 1.2]) is None
    assert flip_test([]) is None


def test_flips_of_more_signs_than_can_be_counted_are_drawn_always_alike():
    values = list(np.random.default_rng(3).normal(0.35, 1, 24))
    found = flip_test(values)
    assert found == flip_test(values[::-1]) == flip_test([-value for value in values])
    assert found == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.15)
    assert flip_test([1.0] * 40) == 1 / 100_000  # no p-value is 0


def test_of_tests_where_nothing_differs_one_in_twenty_at_most_says_it_does():
    rng, tries = np.random.default_rng(4), 1000
    said = sum(flip_test(list(rng.normal(0, 1, 8))) <= 0.05 for _ in range(tries))
    assert said / tries < 0.05 + 4 * (0.05 * 0.95 / tries) ** 0.5


def test_holms_correction_is_as_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.5, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_the_best_are_all_that_may_be_the_best():
    scores = {
        "best": {0: 0.90, 1: 0.80, 2: 0.85},
        "as good": {0: 0.91, 1: 0.78, 2: 0.85},
        "worse by a hair, always": {0: 0.89, 1: 0.7901, 2: 0.8399},
        "worse": {0: 0.5, 1: 0.4, 2: 0.45},
        "one seed": {1: 0.7},
    }
    assert best_set(scores, higher=True) == {"best", "as good"}
    lower = {name: {seed: -value for seed, value in own.items()} for name, own in scores.items()}
    assert best_set(lower, higher=False) == {"best", "as good"}


def test_a_lucky_single_seed_is_not_what_others_are_compared_with():
    scores = {"lucky": {0: 0.99}, "a": {0: 0.9, 1: 0.8, 2: 0.85}, "b": {0: 0.5, 1: 0.41, 2: 0.44}}
    assert best_set(scores, higher=True) == {"a"}


def test_one_seed_makes_nothing_best():
    assert best_set({"a": {0: 0.9}, "b": {0: 0.1}}, higher=True) == set()
    assert best_set({}, higher=True) == set()


def test_what_few_seeds_can_show_is_how_far_an_interval_reaches():
    for seeds in (2, 3, 6):
        values = list(np.random.default_rng(seeds).normal(0, 1, seeds))
        assert needed(seeds) == pytest.approx(interval(values).half / np.std(values, ddof=1))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=8), NUMBERS, st.randoms())
def test_an_interval_turns_moves_and_does_not_care_for_order(pairs, shift, random):
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    found, turned = paired(ours, theirs), paired(theirs, ours)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=1e-9)
    moved = paired([a + shift for a in ours], theirs)
    assert (moved.low, moved.high) == pytest.approx((found.low + shift, found.high + shift), abs=1e-9)
    both = paired([a + shift for a in ours], [b + shift for b in theirs])
    assert (both.low, both.high) == pytest.approx((found.low, found.high), abs=1e-9)
    random.shuffle(pairs)
    mixed = paired([a for a, _ in pairs], [b for _, b in pairs])
    assert (mixed.low, mixed.high) == pytest.approx((found.low, found.high), abs=1e-9)


@given(st.lists(NUMBERS, min_size=6, max_size=18), st.randoms())
def test_flips_do_not_care_for_order_sign_or_scale(values, random):
    found = flip_test(values)
    assert flip_test([-value for value in values]) == flip_test([4 * value for value in values]) == found
    random.shuffle(values)
    assert flip_test(values) == found
    assert 0 < found <= 1


@given(st.dictionaries(st.integers(), st.floats(0, 1), max_size=8))
def test_holm_keeps_the_order_and_lowers_nothing(given_p):
    found = holm(given_p)
    assert found.keys() == given_p.keys()
    assert all(given_p[name] <= found[name] <= min(1, len(found) * given_p[name]) for name in found)
    assert all(found[a] <= found[b] for a in found for b in found if given_p[a] <= given_p[b])
