"""Factors by singular values: the least rank that has the energy, exact sizes, and what no encoder makes is refused."""

import struct

import numpy as np
import pytest
import torch
from torch import nn

from pushcen.codec import LowRank, OptionError, Payload, Schema, decode, decode_row, encode, encode_row, payload_size
from pushcen.codec.wire import HEADER
from pushcen.errors import PayloadError
from tests.codec.test_hostile import sealed

MODEL = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(40, 20), nn.Linear(20, 2))
SCHEMA = Schema.of(MODEL)


def row(seed=0):
    """Matrices whose singular values fall off quickly, a whole one, and zeros."""
    draw = np.random.default_rng(seed)
    parts = []
    for entry in SCHEMA.entries:
        made = draw.standard_normal(entry.shape)
        if len(entry.shape) > 1 and entry.shape[0] > 2:
            left, _, right = np.linalg.svd(made.reshape(entry.shape[0], -1), full_matrices=False)
            made = left @ np.diag(0.5 ** np.arange(left.shape[1])) @ right
        parts.append(made.ravel())
    return np.concatenate(parts).astype(np.float32)


@pytest.mark.parametrize("energy", [0.5, 0.95, 0.9999])
def test_it_is_the_truncated_svd_of_least_rank(energy):
    numbers = row()
    payload = encode_row(torch.from_numpy(numbers), LowRank(energy), SCHEMA)
    found, size = decode_row(payload).numpy(), 0
    for entry, place in SCHEMA.slices:
        if not entry.clustered:
            np.testing.assert_array_equal(found[place], numbers[place])
            size += 4 * entry.size
            continue
        matrix = numbers[place].reshape(entry.shape[0], -1)
        left, values, right = np.linalg.svd(matrix.astype(float), full_matrices=False)
        rank = next(r for r in range(len(values) + 1) if (values[:r] ** 2).sum() >= energy * (values**2).sum())
        small = rank * sum(matrix.shape) < matrix.size
        expected = left[:, :rank] * values[:rank] @ right[:rank] if small else matrix
        np.testing.assert_allclose(found[place].reshape(matrix.shape), expected, atol=1e-6)
        size += 4 * (rank * sum(matrix.shape) if small else matrix.size)
    assert len(payload) == HEADER + 8 + size <= payload_size(SCHEMA, LowRank(energy))
    assert decode_row(Payload.parse(payload.data, SCHEMA)).tolist() == found.tolist()


def test_zeros_cost_nothing_and_what_is_not_finite_is_refused_by_name():
    payload = encode_row(torch.zeros(SCHEMA.size), LowRank(), SCHEMA)
    assert payload.codec.ranks == (0, 0, 0)
    assert not decode(payload)["2.weight"].any()
    numbers = row()
    numbers[5] = np.nan
    with pytest.raises(Exception, match=r"0\.weight has a value that is not finite"):
        encode_row(torch.from_numpy(numbers), LowRank(), SCHEMA)


def changed(at, packed):
    data = bytearray(encode_row(torch.from_numpy(row()), LowRank(0.5), SCHEMA).data)
    data[at : at + len(packed)] = packed
    return sealed(data)


@pytest.mark.parametrize(
    ("at", "packed", "message"),
    [
        (HEADER, struct.pack("<H", 7), "factors of rank 7: too many"),
        (HEADER, struct.pack("<H", 60000), "factors of rank 60000: too many"),
        (6, struct.pack("<H", 2), "the payload has 2 matrices; the schema has 3"),
        (6, struct.pack("<H", 65535), "a payload of 65535 matrices has"),
        (HEADER + 6, b"\1", "between its ranks"),
        (HEADER + 8, struct.pack("<f", float("nan")), "not finite"),
        (HEADER + 8, struct.pack("<9f", *[2.0**40] * 9), "larger than"),
        (HEADER, struct.pack("<H", 0xFFFF), "the body has"),
    ],
)
def test_what_no_encoder_makes_is_refused(at, packed, message):
    with pytest.raises(PayloadError, match=message):
        Payload.parse(changed(at, packed), SCHEMA)


def test_bytes_are_read_as_the_documentation_says():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    body = struct.pack("<2H", 1, 0xFFFF) + struct.pack("<10f", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    schema = Schema.of(model)
    head = b"PCEN" + bytes([1, 9, 2, 0]) + bytes(8) + schema.fingerprint + bytes(24)
    found = decode(Payload.parse(sealed(head + body), schema))
    assert found["0.weight"].tolist() == [[3, 4, 5], [6, 8, 10]]
    assert [found[name].flatten().tolist() for name in ("0.bias", "1.weight", "1.bias")] == [[6, 7], [8, 9], [10]]


def test_the_difference_to_a_model_is_added_to_it():
    from pushcen.codec import Reference

    other = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(40, 20), nn.Linear(20, 2))
    start = Reference.of(other, SCHEMA)
    found = decode(encode(MODEL, LowRank(1.0), schema=SCHEMA, reference=start), reference=start)
    torch.testing.assert_close(found["2.weight"], MODEL[2].weight.detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("energy", [0, -1, 1.01, float("nan")])
def test_an_energy_that_cannot_be_is_refused(energy):
    with pytest.raises(OptionError, match="energy = "):
        LowRank(energy)
