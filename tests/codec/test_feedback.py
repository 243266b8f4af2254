"""What rounding takes off one message travels with the next."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pushcen.codec import Centroids, decode, encode
from pushcen.errors import OptionError


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 8, 32]), st.sampled_from(["default", "paper"]))
def test_what_is_left_is_what_was_there_less_what_was_sent_but_for_what_lies_outermost(seed, clusters, profile):
    torch.manual_seed(seed)
    model, left = nn.Linear(60, 20), torch.zeros(60 * 20 + 20)
    for _ in range(5):
        weights = model.weight.detach().flatten().double()
        there = (left[:1200].double() + weights).clamp(weights.min(), weights.max())
        got = decode(encode(model, Centroids(clusters, profile), left=left))
        np.testing.assert_allclose(left[:1200], there - got["weight"].flatten().double(), rtol=0, atol=1e-6)
        assert torch.equal(got["bias"], model.bias.detach())  # what is not rounded leaves nothing
        assert not left[1200:].any()
        nn.init.normal_(model.weight, std=0.1)


def test_on_average_weights_arrive_though_every_message_rounds():
    torch.manual_seed(0)
    model = nn.Linear(100, 50)
    truth, left = model.weight.detach(), torch.zeros(5050)
    once = decode(encode(model, Centroids(8)))["weight"] - truth
    many = [decode(encode(model, Centroids(8), left=left))["weight"] - truth for _ in range(50)]
    inner = truth.abs() < truth.abs().max() * 0.9
    assert (sum(many) / 50)[inner].norm() < once[inner].norm() / 15
    assert max(one.norm() for one in many) < 2 * once.norm()  # and none is far off


def test_however_long_it_goes_on_no_centroid_leaves_the_range_of_the_weights():
    torch.manual_seed(0)
    model, left = nn.Linear(100, 50), torch.zeros(5050)
    for _ in range(100):
        table = encode(model, Centroids(4), left=left).tables()["weight"]
        assert model.weight.min() <= table[0]
        assert table[-1] <= model.weight.max()
    assert left.abs().max() < table.diff().max()


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(OptionError, match="left: must be a row of 40 values"):
        encode(nn.Linear(9, 4), Centroids(4), left=torch.zeros(39))
