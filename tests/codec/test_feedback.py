"""What rounding takes off one message travels with the next."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pushcen.codec import Centroids, Cut, Dense, Fragment, Schema, decode, encode
from pushcen.errors import OptionError


def row(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


@given(st.integers(0, 2**32 - 1), st.sampled_from([Centroids(4), Centroids(32), Dense("float16")]))
def test_what_was_sent_and_what_is_left_are_what_was_there(seed, codec):
    torch.manual_seed(seed)
    model = nn.Linear(60, 20)
    left, sent, there = torch.zeros(60 * 20 + 20), 0.0, 0.0
    for _ in range(5):
        sent = sent + row(decode(encode(model, codec, feedback=left))).double()
        there = there + row(model.state_dict()).double()
        nn.init.normal_(model.weight, std=0.1)
    np.testing.assert_allclose(sent + left, there, rtol=0, atol=1e-5)


def test_on_average_the_weights_arrive_though_every_message_rounds():
    torch.manual_seed(0)
    model = nn.Linear(100, 50)
    truth, left = model.weight.detach(), torch.zeros(5050)
    once = (decode(encode(model, Centroids(8)))["weight"] - truth).norm()
    many = [decode(encode(model, Centroids(8), feedback=left))["weight"] for _ in range(50)]
    assert (sum(many) / 50 - truth).norm() < once / 15
    assert max((one - truth).norm() for one in many) < 3 * once  # and none is far off


def test_what_is_not_rounded_leaves_nothing():
    model, left = nn.Linear(9, 4), torch.zeros(40)
    for _ in range(3):
        encode(model, Dense(), feedback=left)
        assert not left.any()
    encode(model, Centroids(4), feedback=left)
    assert left[:36].any()
    assert not left[36:].any()  # the bias travels as it is


@pytest.mark.parametrize("codec", [Centroids(4), Dense()])
def test_a_row_of_the_wrong_length_is_refused(codec):
    with pytest.raises(OptionError, match="feedback: must be a row of 40 values"):
        encode(nn.Linear(9, 4), codec, feedback=torch.zeros(39))


def test_a_fragment_takes_none():
    model = nn.Linear(9, 4)
    with pytest.raises(OptionError, match="sends the whole model"):
        encode(model, Fragment(0, Cut(2)), schema=Schema.of(model), feedback=torch.zeros(40))
