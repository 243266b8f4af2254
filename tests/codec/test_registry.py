"""Codecs by number and by name; those that are not pushcen's, and payloads that name what is not here."""

import hashlib
import random
import struct
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from pushcen.codec import (
    Accumulator,
    Centroids,
    Codec,
    Cut,
    Dense,
    Fragment,
    OptionError,
    Payload,
    PayloadError,
    Schema,
    TopK,
    accumulate,
    check_values,
    codecs,
    decode,
    encode,
    payload_size,
)
from pushcen.codec.codec import MARK, OWN, own_codecs
from pushcen.codec.registry import NUMBERS
from pushcen.codec.wire import HEADER
from tests.codec.models import example
from tests.codec.test_hostile import mutate, sealed

SCHEMA = Schema.of(example())


@dataclass(frozen=True)
class Halved(Codec):
    """Float32 numbers over `by`; notes what it is asked."""

    by: int = 2
    asked: ClassVar[list[str]] = []

    @property
    def parameter(self):
        return self.by

    @classmethod
    def read(cls, header, body):
        cls.asked.append("read")
        return cls(header.parameter)

    def size(self, schema):
        return 4 * schema.size

    def write(self, rows, schema, body):
        body[: self.size(schema)].view(np.float32)[:] = np.concatenate([row.numpy() / self.by for _, row in rows])

    def check(self, schema, body):
        self.asked.append("check")
        check_values(body.view(np.float32))

    def add(self, schema, body, weight, into):
        into.total += float(weight * self.by) * torch.from_numpy(body.view(np.float32).copy())


@dataclass(frozen=True)
class Other(Halved):
    """The same number, the same bytes, another name."""


@dataclass(frozen=True)
class Newer(Halved):
    """The same class in its next format."""

    code = 129


@pytest.mark.parametrize(
    "codec", [Centroids(5), Dense(), Dense("float16"), Fragment(1, Cut(3)), TopK(0.3), Halved(), Newer(4)]
)
def test_every_codec_is_found_by_the_number_and_by_the_name_that_it_has(codec):
    again = Payload.parse(encode(example(), codec).data, SCHEMA)
    assert again.codec == codec
    assert codecs()[codec.name] is type(codec)
    assert (NUMBERS.get(codec.code) or own_codecs[codec.mark]) is type(codec)


def test_a_codec_of_ones_own_merges_and_decodes_like_any_other():
    payload = Payload.parse(encode(example(), Halved(8)).data, SCHEMA)
    assert len(payload) == payload_size(SCHEMA, Halved(8)) == HEADER + MARK + 4 * SCHEMA.size
    assert payload.data[5:8] == struct.pack("<BH", OWN.start, 8)
    assert payload.data[HEADER : HEADER + MARK] == hashlib.sha256(b"tests.codec.test_registry:Halved").digest()[:16]
    assert torch.equal(decode(payload)["3.weight"], example()[3].weight)
    assert payload.tables() == {}
    into = Accumulator.zeros(SCHEMA)
    accumulate(payload, 3, into)
    accumulate(encode(example(), Dense()), 1, into)
    assert into.weight == 4


def test_two_codecs_with_one_number_are_never_taken_for_each_other():
    mine, yours = encode(example(), Halved()).data, encode(example(), Other()).data
    assert mine[:16] == yours[:16]
    assert type(Payload.parse(mine, SCHEMA).codec) is Halved
    assert type(Payload.parse(yours, SCHEMA).codec) is Other
    assert Payload.parse(mine, SCHEMA).codec != Payload.parse(yours, SCHEMA).codec


def test_what_is_not_here_is_refused_with_its_number_and_nothing_is_imported(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    data = bytearray(encode(example(), Halved()).data)
    data[HEADER : HEADER + MARK] = hashlib.sha256(b"trap:Codec").digest()[:16]
    with pytest.raises(PayloadError, match=r"codec 128 with the mark .*not imported here.*test_registry:Halved"):
        Payload.parse(sealed(data), SCHEMA)
    assert "trap" not in sys.modules
    for number in (0, 100, 127):
        data[5] = number
        with pytest.raises(PayloadError, match=f"codec {number}, which this pushcen does not know"):
            Payload.parse(sealed(data), SCHEMA)
    newer = bytearray(encode(example(), Newer()).data)
    newer[5] = 128
    with pytest.raises(PayloadError, match=r"number 128 and parameter 2; Newer.* has 129 and 2"):
        Payload.parse(sealed(newer), SCHEMA)
    with pytest.raises(PayloadError, match="not imported here"):
        Payload.parse(sealed(newer[: HEADER + 5]), SCHEMA)  # cut off within its mark


def test_a_codec_sees_only_what_arrived_whole_and_for_this_model():
    data = encode(example(), Halved()).data
    flipped, other = bytearray(data), bytearray(data)
    flipped[-1] ^= 1
    other[16:32] = bytes(16)
    Halved.asked.clear()
    for bad in (data[:-1], data + b"\0", bytes(flipped), sealed(other), b"PCEN" + data[4:40]):
        with pytest.raises(PayloadError):
            Payload.parse(bad, SCHEMA)
    assert Halved.asked == []
    for longer in (sealed(data[:-4]), sealed(data + bytes(4))):
        with pytest.raises(PayloadError, match=f"has {4 * SCHEMA.size}"):
            Payload.parse(longer, SCHEMA)
    assert set(Halved.asked) == {"read"}


def test_mutations_of_its_payloads_are_refused_or_well_formed():
    dice, data = random.Random(3), encode(example(), Halved()).data
    accepted = 0
    for _ in range(3000):
        into = Accumulator.zeros(SCHEMA)
        try:
            accumulate(mutate(data, dice), 2**20, into)
        except PayloadError:
            assert not into.total.any()
            continue
        accepted += 1
        assert torch.isfinite(into.total).all()
    assert 0 < accepted < 2000


@dataclass(frozen=True)
class Forgetful(Halved):
    @classmethod
    def read(cls, header, body):
        return cls()

    @property
    def parameter(self):
        return 0


class Plain(Dense):
    """Keeps pushcen's number."""


class Posing(Dense, plain_name="dense"):
    code = 200


def test_a_codec_that_receivers_could_not_know_again_is_refused_before_it_is_sent():
    encode(example(), Forgetful())
    with pytest.raises(OptionError, match=r"Forgetful\(by=3\) is read back as .*Forgetful\(by=2\)"):
        encode(example(), Forgetful(3))
    with pytest.raises(OptionError, match="code = 2 must be 128 to 255"):
        encode(example(), Plain())
    with pytest.raises(OptionError, match="parameter = 70000 at most"):
        encode(example(), Halved(70000))
    with pytest.raises(OptionError, match="no plain name"):
        encode(example(), Posing())
    assert codecs()["dense"] is Dense
