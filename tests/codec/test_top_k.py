"""top-k: what is sent, recomputed with plain numpy; what is left out comes later; what no encoder makes is refused."""

import struct

import numpy as np
import pytest
import torch
import xxhash

from pushcen.codec import Accumulator, Payload, Reference, Schema, TopK, accumulate, decode_row, encode, payload_size
from pushcen.codec.wire import HEADER
from pushcen.errors import OptionError, PayloadError


def model_of(seed, size=201):
    torch.manual_seed(seed)
    return torch.nn.Linear(size, 3)


def row_of(model):
    return torch.cat([one.detach().flatten() for one in model.parameters()]).numpy()


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.03, 0.1, 0.5, 1.0])
def test_the_numbers_farthest_from_the_start_are_sent_and_what_is_left_out_comes_with_the_next(share):
    start = model_of(0)
    schema, codec = Schema.of(start), TopK(share)
    reference, left, owed = Reference.of(start, schema), torch.zeros(schema.size), np.zeros(schema.size)
    count = -(-schema.size * round(10_000 * share) // 10_000)
    for seed in (1, 2, 3):
        model = model_of(seed)
        payload = encode(model, codec, schema=schema, reference=reference, left=left)
        wanted = row_of(model) - row_of(start) + owed.astype(np.float32)
        sent = np.zeros(schema.size, np.float32)
        order = sorted(range(schema.size), key=lambda at: (-abs(wanted[at]), at))[:count]
        sent[order] = wanted[order]
        np.testing.assert_array_equal(left.numpy(), wanted - sent)
        again = Payload.parse(payload.data, schema, {reference.fingerprint: reference})
        np.testing.assert_allclose(decode_row(again).numpy(), row_of(start) + sent, atol=1e-6)
        into = Accumulator.zeros(schema)
        accumulate(again, 3, into)
        np.testing.assert_allclose(into.total.numpy(), 3 * (row_of(start) + sent), atol=1e-5)
        owed = wanted - sent
        listed, flags = 4 * count, -(-schema.size // 8)
        assert len(payload) == payload_size(schema, codec) == HEADER + 4 * count + min(listed, flags)
    assert payload_size(schema, codec) <= HEADER + codec.most(schema) == payload_size(schema, TopK(1.0))


def test_of_equal_numbers_the_first_are_sent():
    start = torch.nn.Linear(50, 1, bias=False)
    torch.nn.init.zeros_(start.weight)
    schema = Schema.of(start)
    reference = Reference.of(start, schema)
    torch.nn.init.constant_(start.weight, -2.0)
    sent = decode_row(encode(start, TopK(0.06), schema=schema, reference=reference), reference)
    assert sent.tolist() == [-2.0] * 3 + [0.0] * 47


def sealed(data):
    """The payload with its checksum put right."""
    rest = data[:48] + data[56:]
    return data[:48] + struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(rest))) + data[56:]


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_body_that_no_encoder_makes_is_refused(share):
    model = model_of(1)
    schema = Schema.of(model)
    reference = Reference.of(model_of(0), schema)
    good = encode(model, TopK(share), schema=schema, reference=reference).data
    Payload.parse(sealed(good), schema)
    count = TopK(share).count(schema)
    at = HEADER + 4 * count
    if share == 0.01:
        wrong = [
            good[:at] + good[at + 4 : at + 8] + good[at : at + 4] + good[at + 8 :],  # not ascending
            good[:at] + good[at + 4 : at + 8] + good[at + 4 :],  # one twice
            good[:-4] + struct.pack("<I", schema.size),  # beyond the end
        ]
    else:
        flags = bytearray(good[at:])
        first = next(place for place, byte in enumerate(flags) if byte != 255)
        flags[first] |= ~flags[first] & 255 & -(~flags[first] & 255)  # one more
        assert schema.size % 8
        last = bytearray(good[at:])
        last[-1] |= 0x80  # beyond the end
        wrong = [good[:at] + bytes(flags), good[:at] + bytes(last), good[:at] + bytes(len(flags))]
    wrong.append(good[:HEADER] + struct.pack("<f", float("nan")) + good[HEADER + 4 :])
    wrong.append(good[:6] + struct.pack("<H", 0) + good[8:])
    wrong.append(good[:6] + struct.pack("<H", 10_001) + good[8:])
    wrong.append(good[:6] + struct.pack("<H", 9_999) + good[8:])  # another length
    for data in wrong:
        with pytest.raises(PayloadError):
            Payload.parse(sealed(data), schema)


def test_a_share_of_nothing_or_more_than_all_is_refused():
    for share in (0, 0.00001, 1.1, "half", float("nan")):
        with pytest.raises(OptionError, match="share = "):
            TopK(share)
