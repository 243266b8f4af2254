"""The format of this version is frozen: old bytes are read, and the same bytes are written."""

import pytest
import torch

from pushcen.codec import Accumulator, Payload, Reference, Schema, accumulate
from tests.codec.golden.make import HERE, PAYLOADS, payload, reference
from tests.codec.models import example

ERRORS = {
    "centroids-k5.bin": 0.25,
    "lean-4-bits-difference.bin": 1e-6,
    "lean-3-bits.bin": 1.2,
    "modulo-3-bits.bin": 1 + 1 / 16,
}
ERRORS |= {"top-k-2-percent-difference.bin": 0.5}  # 3 of 8 differences are sent


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_same_bytes_are_written(name):
    assert payload(name).data == (HERE / name).read_bytes()


@pytest.mark.parametrize("name", PAYLOADS)
def test_old_bytes_are_read(name):
    codec, differs = PAYLOADS[name]
    schema = Schema.of(example())
    message = Payload.parse((HERE / name).read_bytes(), schema)
    assert message.codec == codec
    into = Accumulator.zeros(schema)
    accumulate(message, 1, into, reference=reference() if differs else None)
    covered = into.weights() == 1
    row = Reference.of(example()).row
    error = ERRORS.get(name, 0.0)  # the example has 23 values, so 32 centroids hold them all
    torch.testing.assert_close(into.total[covered], row[covered], rtol=0, atol=error)


def test_the_header_is_where_the_documentation_says():
    data = (HERE / "centroids-k5.bin").read_bytes()
    assert data[:4] == b"PCEN"
    assert data[4:8] == bytes([1, 1, 5, 0])
    assert int.from_bytes(data[8:16], "little") == len(data)
    assert data[16:32] == Schema.of(example()).fingerprint
    assert data[32:48] == bytes(16)
