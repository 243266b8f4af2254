"""The modulo codec: every number but its whole part, to half a step, in just so many bits."""

import numpy as np
import pytest
import torch

from pushcen.codec import ModelError, Modulo, OptionError, Payload, Schema, decode, decode_row, encode, encode_row

SCHEMA = Schema.of(torch.nn.Linear(7, 13))  # 104 numbers


def row(seed, spread=40.0):
    return torch.tensor(np.random.default_rng(seed).normal(0, spread, SCHEMA.size), dtype=torch.float32)


@pytest.mark.parametrize("bits", range(1, 9))
def test_numbers_come_back_modulo_one_within_half_a_step(bits):
    values = row(bits)
    values[:6] = torch.tensor([0.0, 0.5, -0.5, 1.5, 0.49999997, -0.49999997])
    message = Payload.parse(encode_row(values, Modulo(bits), SCHEMA).data, SCHEMA)
    found = decode_row(message)
    assert len(message) == 56 + -(-SCHEMA.size * bits // 8)
    assert found.abs().max() < 0.5
    off = (found.double() - values.double() + 0.5) % 1 - 0.5
    assert off.abs().max() <= Modulo(bits).error + 1e-12
    assert {float(one) for one in found} <= {float(one) for one in Modulo(bits).levels()}


def test_bits_are_where_the_documentation_says():
    """Index i in bits i b to i b + b - 1, from the lowest bit of the first byte."""
    values = torch.zeros(SCHEMA.size) - 0.49
    values[:3] = torch.tensor([0.49, -0.49, 0.1])  # of eight steps the last, the first, the fifth
    body = encode_row(values, Modulo(3), SCHEMA).body
    assert body[0] == 0b00_000_111
    assert body[1] == 0b1
    assert not body[2:].any()


def test_the_same_number_is_added_with_a_weight():
    from pushcen.codec import Accumulator, accumulate

    values, into = row(3, 0.1), Accumulator.zeros(SCHEMA)
    message = encode_row(values, Modulo(8), SCHEMA)
    accumulate(message, 3, into)
    accumulate(message, 1, into)
    torch.testing.assert_close(into.total, 4 * decode_row(message))


def test_it_stands_for_no_model_and_takes_no_number_that_is_none():
    model = torch.nn.Linear(7, 13)
    with pytest.raises(OptionError, match="only a part of a model"):
        decode(encode(model, Modulo()))
    torch.nn.init.constant_(model.bias, float("nan"))
    with pytest.raises(ModelError, match="bias"):
        encode(model, Modulo())
