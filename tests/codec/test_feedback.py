"""What rounding takes off one message travels with the next."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pushcen.codec import Centroids, decode, encode
from pushcen.errors import OptionError


def sent(model, clusters, left):
    return decode(encode(model, Centroids(clusters, left=left)))


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 8, 32]), st.sampled_from(["default", "paper"]))
def test_what_is_left_is_what_was_there_less_what_was_sent_if_within_reach(seed, clusters, profile):
    torch.manual_seed(seed)
    model, left = nn.Linear(60, 20), torch.zeros(60 * 20 + 20)
    for _ in range(5):
        there = left[:1200].double() + model.weight.detach().flatten().double()
        payload = encode(model, Centroids(clusters, profile, left=left))
        got, table = decode(payload), payload.tables()["weight"].numpy()
        low, high = table[0] - (table[1] - table[0]) / 2, table[-1] + (table[-1] - table[-2]) / 2
        expected = there.clamp(low, high) - got["weight"].flatten().double()
        np.testing.assert_allclose(left[:1200], expected, rtol=0, atol=1e-6)
        assert profile == "paper" or left.abs().max() <= np.diff(table).max() / 2 + 1e-6  # it does not pile up
        assert torch.equal(got["bias"], model.bias.detach())  # what is not rounded leaves nothing
        assert not left[1200:].any()
        nn.init.normal_(model.weight, std=0.1)


def test_centroids_are_those_of_the_weights_alone():
    torch.manual_seed(0)
    model, left = nn.Linear(60, 20), torch.zeros(1220)
    tables = [encode(model, Centroids(8, left=left)).tables()["weight"] for _ in range(4)]
    assert left.any()
    assert all(torch.equal(table, encode(model, Centroids(8)).tables()["weight"]) for table in tables)


def test_on_average_weights_arrive_though_every_message_rounds():
    torch.manual_seed(0)
    model = nn.Linear(100, 50)
    truth, left = model.weight.detach(), torch.zeros(5050)
    once = decode(encode(model, Centroids(8)))["weight"] - truth
    many = [sent(model, 8, left)["weight"] - truth for _ in range(50)]
    table = encode(model, Centroids(8)).tables()["weight"]
    inner = (truth > table[0]) & (truth < table[-1])  # beyond, nothing can be sent that is further out
    assert (sum(many) / 50)[inner].norm() < once[inner].norm() / 15
    assert max(one.norm() for one in many) < 2 * once.norm()  # and none is far off


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(OptionError, match="left: must be a row of 40 values"):
        encode(nn.Linear(9, 4), Centroids(4, left=torch.zeros(39)))
