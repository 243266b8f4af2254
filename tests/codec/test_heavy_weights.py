"""Weights of any size, as inflated mass brings them: the mean is that of their ratios, and nothing overflows."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pushcen.codec import Accumulator, Cut, Dense, Fragment, Schema, accumulate, encode


def model(value):
    made = torch.nn.Linear(6, 2)
    for tensor in made.parameters():
        torch.nn.init.constant_(tensor, value)
    return made


def mean(into):
    made = model(-7.0)
    into.write_mean(made)
    return made.weight[0, 0].item()


SCHEMA = Schema.of(model(0.0))


@pytest.mark.parametrize("weight", [2**59, 2**60, 2**60 + 1, 2**61, 2**100, 2**128, 1e30])
def test_a_weight_of_any_size_counts_by_its_ratio(weight):
    into = Accumulator.zeros(SCHEMA)
    into.add_model(model(1.0), 3 * weight)
    accumulate(encode(model(5.0), Dense()), weight, into)
    assert mean(into) == 2.0
    assert into.weight <= 2.0**60


def test_weights_up_to_the_bound_are_not_touched():
    into = Accumulator.zeros(SCHEMA)
    into.add_model(model(1.0), 2**59)
    into.add_model(model(3.0), 2**59)
    assert (into.weight, into.shift, mean(into)) == (2**60, 0, 2.0)


@given(st.lists(st.tuples(st.integers(0, 2**128), st.sampled_from([-3.0, 0.5, 1.0, 2.0**20])), min_size=1, max_size=8))
def test_tiny_and_huge_weights_in_any_order_give_the_mean(entries):
    total = sum(weight for weight, _ in entries)
    if not total:
        return
    into = Accumulator.zeros(SCHEMA)
    for at, (weight, value) in enumerate(entries):
        if at % 2:
            into.add_model(model(value), weight)
        else:
            accumulate(encode(model(value), Dense()), weight, into)
    expected = sum(weight / total * value for weight, value in entries)
    largest = max(abs(value) for weight, value in entries if weight)
    assert mean(into) == pytest.approx(expected, rel=1e-5, abs=1e-5 * largest)


@pytest.mark.parametrize("folded", [1, 2**70])
@pytest.mark.parametrize("own", [1, 2**70])
def test_two_sums_are_added_at_the_same_scale(folded, own):
    one, other = Accumulator.zeros(SCHEMA), Accumulator.zeros(SCHEMA)
    one.add_model(model(1.0), own)
    other.add_model(model(3.0), folded)
    before = other.total.clone()
    one.add(other)
    assert mean(one) == pytest.approx((own + 3 * folded) / (own + folded))
    assert torch.equal(other.total, before)


def test_a_sum_that_was_scaled_is_saved_and_goes_on():
    into = Accumulator.zeros(SCHEMA)
    into.add_model(model(1.0), 2**90)
    again = Accumulator.restored(SCHEMA, into.total.clone(), json.loads(json.dumps(into.plain())))
    for one in (into, again):
        one.add_model(model(3.0), 2**90)
    assert mean(into) == mean(again) == 2.0


def test_fragments_of_different_weights_are_divided_each_by_its_own():
    cut = Cut(2, cut_seed=0)
    into = Accumulator.zeros(SCHEMA)
    into.add_model(model(1.0), 2**70)
    accumulate(encode(model(3.0), Fragment(0, cut)), 2**70, into)
    accumulate(encode(model(3.0), Fragment(1, cut)), 3 * 2**70, into)
    made = model(-7.0)
    into.write_mean(made)
    assert {value for tensor in made.parameters() for value in tensor.flatten().tolist()} == {2.0, 2.5}
