"""The frame around every payload: a header of 56 bytes, and a checksum over all but itself.

`docs/wire-format.md` says what each byte is. Nothing here looks into the body; each codec checks its own.
"""

import struct
from dataclasses import dataclass

import xxhash

from pushcen.errors import PayloadError

MAGIC = b"PCEN"
VERSION = 1
HEADER = 56
NO_REFERENCE = bytes(16)

_FIELDS = struct.Struct("<4sBBHQ16s16s")  # magic, version, codec, parameter, length, schema, reference
_SUM = slice(_FIELDS.size, HEADER)


@dataclass(frozen=True, slots=True)
class Header:
    """What a payload says of itself before its body."""

    codec: int
    parameter: int
    """The codec's own: the number of clusters, for centroids."""
    length: int
    schema: bytes
    reference: bytes


def write_header(header: Header, data: memoryview) -> None:
    """Write the header in front of a finished body, with the checksum of both."""
    _FIELDS.pack_into(
        data, 0, MAGIC, VERSION, header.codec, header.parameter, header.length, header.schema, header.reference
    )
    data[_SUM] = _checksum(data)


def read_header(data: bytes | memoryview) -> Header:
    """Read the header of a whole payload whose length and checksum are right.

    >>> read_header(b"GET / HTTP/1.1" + bytes(100))
    Traceback (most recent call last):
    pushcen.errors.PayloadError: this is not a pushcen payload: it begins with b'GET ', not b'PCEN'
    """
    view = memoryview(data)
    if len(view) < HEADER:
        raise PayloadError(f"a payload of {len(view)} bytes is cut off: the header alone has {HEADER}")
    magic, version, codec, parameter, length, schema, reference = _FIELDS.unpack_from(view)
    if magic != MAGIC:
        raise PayloadError(f"this is not a pushcen payload: it begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise PayloadError(f"the payload has wire version {version}; this pushcen reads version {VERSION}")
    if length != len(view):
        raise PayloadError(f"the payload has {len(view)} bytes and says that it has {length}")
    if bytes(view[_SUM]) != _checksum(view):
        raise PayloadError("the payload's checksum does not match: it was damaged on its way")
    return Header(codec, parameter, length, schema, reference)


def _checksum(data: memoryview) -> bytes:
    digest = xxhash.xxh3_64(data[: _FIELDS.size])
    digest.update(data[HEADER:])
    return digest.intdigest().to_bytes(8, "little")
