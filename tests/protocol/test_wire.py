"""The byte form of an envelope: frozen, and safe against anything."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import ProtocolError
from pushcen.protocol import Envelope, from_bytes, to_bytes

GOLDEN = Path(__file__).parent / "golden"
FROZEN = {
    "whole_model.bin": Envelope("ward-3/1", "ward-7/2", 0, 42, 550 * 2**40 + 7, b"a model"),
    "fragment.bin": Envelope("a/1", "b/1", 5, 1, 0, b""),
    "largest.bin": Envelope("ä/9223372036854775807", "b#/0", 2**32 - 1, 2**63 - 1, 2**128 - 1, bytes(range(256))),
}
PEERS = st.builds(
    lambda name, epoch: f"{name}/{epoch}", st.text("aä/#🐟", min_size=1, max_size=20), st.integers(0, 2**63 - 1)
)
ENVELOPES = st.builds(
    Envelope,
    PEERS,
    PEERS,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**128 - 1),
    st.binary(),
)


@pytest.mark.parametrize("name", FROZEN)
def test_version_1_is_frozen(name):
    assert to_bytes(FROZEN[name]) == (GOLDEN / name).read_bytes()
    assert from_bytes((GOLDEN / name).read_bytes()) == FROZEN[name]


@given(ENVELOPES)
def test_what_is_written_is_read(envelope):
    assert from_bytes(to_bytes(envelope)) == envelope


@given(st.binary(max_size=200))
def test_garbage_is_refused(data):
    with pytest.raises(ProtocolError):
        from_bytes(data)


@given(ENVELOPES, st.data())
def test_a_changed_header_is_refused(envelope, data):
    raw = bytearray(to_bytes(envelope))
    header = struct.unpack_from("<H", raw, 6)[0]
    at = data.draw(st.integers(0, header - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProtocolError):
        from_bytes(bytes(raw))


@given(ENVELOPES, st.data())
def test_a_cut_or_longer_envelope_is_refused(envelope, data):
    raw = to_bytes(envelope)
    with pytest.raises(ProtocolError):
        from_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(ProtocolError):
        from_bytes(raw + b"x")


def rewritten(raw, extra=b"", **fields):
    """A well-formed envelope with other fields, as somebody else might write it."""
    size = struct.unpack_from("<H", raw, 6)[0]
    header = bytearray(raw[: size - 4]) + extra
    struct.pack_into("<H", header, 6, len(header) + 4)
    for at, value in fields.values():
        header[at : at + len(value)] = value
    return bytes(header) + struct.pack("<I", zlib.crc32(header)) + raw[size:]


def test_fields_of_a_newer_minor_version_are_skipped_and_a_newer_major_is_refused():
    raw = (GOLDEN / "whole_model.bin").read_bytes()
    assert from_bytes(rewritten(raw, extra=b"more", minor=(5, b"\x09"))) == FROZEN["whole_model.bin"]
    with pytest.raises(ProtocolError, match="version 2: this pushcen reads version 1"):
        from_bytes(rewritten(raw, major=(4, b"\x02")))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"sequence": (8, b"\xff" * 8)}, "sequence"),
        ({"payload": (32, b"\xff" * 8)}, "payload"),
        ({"names": (44, b"\xff\xff")}, "header"),
        ({"sender": (46, b"\xff")}, "UTF-8"),
        ({"epoch": (53, b"x")}, "must be name/epoch"),
    ],
)
def test_a_well_checksummed_lie_is_refused(fields, says):
    with pytest.raises(ProtocolError, match=says):
        from_bytes(rewritten((GOLDEN / "whole_model.bin").read_bytes(), **fields))


@pytest.mark.parametrize(
    "bad",
    [
        Envelope("a/1", "b/1", 0, 1, -1, b""),
        Envelope("a/1", "b/1", 0, 1, 1.0, b""),
        Envelope("a/1", "b/1", 0, 2**63, 1, b""),
        Envelope("a/1", "b/1", 2**32, 1, 1, b""),
        Envelope("a", "b/1", 0, 1, 1, b""),
        Envelope("a/1", "b/01", 0, 1, 1, b""),
        Envelope("a/1", "b/1", 0, 1, 1, "text"),
    ],
)
def test_what_cannot_be_written_is_refused(bad):
    with pytest.raises(ProtocolError, match="must be"):
        to_bytes(bad)
