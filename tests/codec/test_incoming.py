"""A payload that comes in pieces is the payload that came at once, and is refused just as that."""

import pytest
import torch
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from pushcen.codec import Centroids, Dense, Lean, Payload, PayloadError, Schema, encode
from pushcen.codec.payload import bytes_to_check
from pushcen.codec.wire import HEADER, Incoming
from pushcen.models import LeNet
from tests.codec.models import example

SCHEMA = Schema.of(example())
DATA = encode(example(), Centroids(5)).data


def incoming(data, cuts=()):
    """Take data in, cut at these places."""
    whole, begin = Incoming(len(data)), 0
    for end in (*sorted(cuts), len(data)):
        whole.add(memoryview(data)[begin:end])
        begin = end
    return whole


@given(st.lists(st.integers(0, len(DATA))), st.lists(st.integers(0, HEADER + 2)))
def test_however_it_is_cut_it_is_the_same_payload(cuts, early):
    found = Payload.parse(incoming(DATA, cuts + early), SCHEMA)
    assert found.data == DATA
    assert found.codec == Centroids(5)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255), st.lists(st.integers(0, len(DATA))))
def test_a_byte_that_changed_on_its_way_is_found(at, change, cuts):
    data = bytearray(DATA)
    data[at] ^= change
    with pytest.raises(PayloadError) as one:
        Payload.parse(bytes(data), SCHEMA)
    with pytest.raises(PayloadError) as other:
        Payload.parse(incoming(bytes(data), cuts), SCHEMA)
    assert str(one.value) == str(other.value)


@given(st.integers(0, len(DATA) - 1))
def test_nothing_is_read_of_what_has_not_come(size):
    short = Incoming(len(DATA))
    short.add(DATA[:size])
    with pytest.raises(PayloadError, match=f"{len(DATA) - size} of its {len(DATA)} bytes are missing"):
        Payload.parse(short, SCHEMA)
    with pytest.raises(PayloadError, match="goes on after"):
        short.add(DATA[size:] + b"x")
    short.add(DATA[size:])
    assert short.data == DATA


def test_its_bytes_are_written_once_and_are_its_own():
    pieces = [bytes([i]) * 100_000 for i in range(5)]
    whole = Incoming(500_000)
    for piece in pieces:
        whole.add(piece)
    assert whole.data is whole.data, "no copy"
    assert whole.data == b"".join(pieces)


def test_a_checksum_of_other_bytes_does_not_make_up_for_the_payloads_own():
    data = bytearray(DATA)
    data[-1] ^= 1
    data[48:56] = xxhash.xxh3_64_intdigest(DATA[:48] + DATA[56:]).to_bytes(8, "little")
    with pytest.raises(PayloadError, match="checksum"):
        Payload.parse(incoming(bytes(data)), SCHEMA)


@pytest.mark.parametrize("codec", [Centroids(32), Centroids(5), Dense(), Lean(2.0)], ids=str)
def test_how_much_is_looked_at_says_what_a_check_costs(codec):
    torch.manual_seed(1)
    model = LeNet()
    data, schema = encode(model, codec).data, Schema.of(model)
    looked_at = bytes_to_check(incoming(data), schema)
    assert looked_at < 8_000 if codec == Centroids(32) else looked_at == len(data) - HEADER
    damaged = data[:20] + b"x" + data[21:]
    with pytest.raises(PayloadError):
        bytes_to_check(incoming(damaged), schema)
