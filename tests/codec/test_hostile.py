"""Bytes from outside: refused whole with one error, before any large allocation, and nothing changed."""

import contextlib
import random
import struct
import tracemalloc

import numpy as np
import pytest
import torch
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from pushcen.codec import (
    Accumulator,
    Centroids,
    Cut,
    Dense,
    Fragment,
    Lean,
    LowRank,
    Modulo,
    Payload,
    PayloadError,
    Schema,
    TopK,
    WithMass,
    accumulate,
    encode,
)
from pushcen.codec.wire import HEADER
from pushcen.models import LeNet
from tests.codec.models import example

CODECS = [Centroids(5), Centroids(32), Dense(), Dense("float16"), Fragment(1, Cut(3)), Lean(2.0), TopK(0.02), TopK(0.5)]
CODECS += [WithMass(Dense(), 0.5), WithMass(Centroids(5), 0.5), Modulo(3), LowRank(0.9)]
SCHEMA = Schema.of(example())


def sealed(data):
    """Make length and checksum right again, as an attacker would."""
    data = bytearray(data)
    if len(data) >= HEADER:
        data[8:16] = struct.pack("<Q", len(data))
        data[48:56] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(data[:48]) + bytes(data[56:])))
    return bytes(data)


def refused(data):
    into = Accumulator.zeros(SCHEMA)
    into.total.fill_(3)
    with pytest.raises(PayloadError) as error:
        accumulate(bytes(data), 1, into)
    assert (into.total == 3).all()
    assert (into.weight, into.cut, into.extra) == (0, None, None)
    return str(error.value)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_every_cut_and_every_extension_is_refused(codec):
    data = encode(example(), codec).data
    for end in range(len(data)):
        refused(data[:end])
        refused(sealed(data[:end]))
    for extra in (b"\0", bytes(7), bytes(100_000)):
        refused(data + extra)
        refused(sealed(data + extra))


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_every_flipped_bit_is_refused(codec):
    data = encode(example(), codec).data
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(flipped)


def changed(codec, offset, new):
    data = bytearray(encode(example(), codec).data)
    data[offset : offset + len(new)] = new
    return sealed(data)


def test_each_lie_is_named():
    body, tables = HEADER, 2 * 4 * 4  # two layers of K = 5: four floats each
    plain = 4 * 8  # two biases
    five = Centroids(5)
    nan, huge = struct.pack("<f", float("nan")), struct.pack("<f", 2.0**61)
    assert "begins with b'XCEN'" in refused(changed(five, 0, b"X"))
    assert "wire version 2" in refused(changed(five, 4, b"\x02"))
    assert "codec 99" in refused(changed(five, 5, struct.pack("<BH", 99, 0)))
    assert "clusters = 1: must be" in refused(changed(five, 6, struct.pack("<H", 1)))
    assert "clusters = 257: must be" in refused(changed(five, 6, struct.pack("<H", 257)))
    assert "Centroids(clusters=6" in refused(changed(five, 6, struct.pack("<H", 6)))
    assert "for schema 00" in refused(changed(five, 16, bytes(16)))
    assert "not finite" in refused(changed(five, body, nan))
    assert "not finite" in refused(changed(five, body + tables, huge))
    assert "not sorted" in refused(changed(five, body, struct.pack("<f", 100.0)))
    assert "zero index 5 is beyond" in refused(changed(five, body + tables + plain, b"\x05"))
    assert "not sorted" in refused(changed(five, body + tables + plain, b"\x00"))
    assert "0.weight has index 7, beyond its 5" in refused(changed(five, body + tables + plain + 2, b"\x07"))
    assert "do not end in zero bits" in refused(changed(five, len(encode(example(), five)) - 1, b"\xf0"))
    assert "parameter 5" in refused(changed(Dense(), 6, b"\x05"))
    assert "not finite" in refused(changed(Dense(), body, nan))
    assert "not finite" in refused(changed(Dense("float16"), body, b"\x00\x7c"))
    assert "part = 3" in refused(changed(CODECS[4], body + 10, struct.pack("<H", 3)))
    assert "parts = 0" in refused(changed(CODECS[4], body + 8, struct.pack("<H", 0)))
    assert "spare bytes" in refused(changed(CODECS[4], body + 12, b"\x01"))
    assert "not finite" in refused(changed(CODECS[4], body + 16, nan))
    assert "says which part" in refused(sealed(encode(example(), CODECS[4]).data[: body + 8]))
    assert "bits = 9: must be" in refused(changed(Modulo(3), 6, struct.pack("<H", 9)))
    assert "do not end in zero bits" in refused(changed(Modulo(3), len(encode(example(), Modulo(3))) - 1, b"\xff"))
    with_mass = WithMass(five, 0.5)
    for mass in (float("nan"), float("inf"), -0.5, 2.0**61):
        assert "a mass that is" in refused(changed(with_mass, body, struct.pack("<d", mass)))
    assert "not finite" in refused(changed(with_mass, body + 8, nan))
    for inner in (0, 4, 6, 15):  # no codec, a part of a model, itself
        assert "with mass has parameter" in refused(changed(with_mass, 6, struct.pack("<H", inner << 12 | 5)))
    assert "clusters = 1: must be" in refused(changed(with_mass, 6, struct.pack("<H", 1 << 12 | 1)))
    assert "and 7 bytes" in refused(sealed(encode(example(), with_mass).data[: body + 7]))
    assert "says that it has 18446744073709551615" in refused(encode(example()).data[:8] + b"\xff" * 8 + bytes(900))


@given(st.binary(max_size=2000))
def test_any_bytes_are_refused(data):
    refused(data)
    refused(b"PCEN\x01" + data)


def mutate(data, dice):
    """One to four changes of the kinds that break parsers, and often a right length and checksum after them."""
    data = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            data[at : at + 4] = dice.choice((b"\xff\xff\xff\xff", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff", bytes(4)))
        elif kind == 3:
            del data[at : at + dice.randint(1, 9)]
        elif kind == 4:
            data[at:at] = dice.randbytes(dice.randint(1, 9))
        else:
            data[4:8] = struct.pack("<BBH", 1, dice.randrange(6), dice.choice((0, 2, 5, 32, 256, 65535)))
    return sealed(data) if dice.random() < 0.8 else bytes(data)


def test_a_hundred_thousand_mutations_break_nothing():
    dice = random.Random(11)
    seeds = [encode(example(), codec).data for codec in CODECS]
    into = Accumulator.zeros(SCHEMA)
    before = into.total.fill_(3).clone()
    count, accepted = 100_000, 0
    for _ in range(count):
        try:
            accumulate(mutate(dice.choice(seeds), dice), 2**60, into)
        except PayloadError:
            assert torch.equal(into.total, before)
            assert (into.weight, into.cut, into.extra) == (0, None, None)
            continue
        accepted += 1  # still a well-formed message: other numbers, which nobody can know
        assert torch.isfinite(into.total).all()
        into = Accumulator(SCHEMA, before.clone())
    assert 0.02 * count < accepted < 0.5 * count  # the mutations reach deep, and most are caught


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_checking_allocates_no_more_than_the_payload_twice(codec):
    model, dice = LeNet(10), random.Random(5)
    schema = Schema.of(model)
    data = encode(model, codec).data
    Payload.parse(data, schema)  # compile before memory is watched
    for bad in [data, *(mutate(data, dice) for _ in range(300))]:
        tracemalloc.start()
        with contextlib.suppress(PayloadError):
            Payload.parse(bad, schema)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= 2 * len(data) + 20_000


def test_what_was_checked_cannot_change():
    data = bytearray(encode(example()).data)
    payload = Payload.parse(data, SCHEMA)
    data[HEADER:] = bytes(len(data) - HEADER)
    assert Payload.parse(payload.data, SCHEMA).data == payload.data
    assert not np.array_equal(np.frombuffer(data, np.uint8), np.frombuffer(payload.data, np.uint8))
