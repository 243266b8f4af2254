"""The frame around every payload: a header of 56 bytes, and a checksum over all but itself.

`docs/wire-format.md` says what each byte is. Nothing here looks into the body; each codec checks its own.
"""

import ctypes
import struct
from dataclasses import dataclass
from io import BytesIO

import xxhash

from pushcen.errors import PayloadError

MAGIC = b"PCEN"
VERSION = 1
HEADER = 56
NO_REFERENCE = bytes(16)

_of_size = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)
_unwritten = _of_size(("PyBytes_FromStringAndSize", ctypes.pythonapi))  # from None: bytes that are still to be written

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


class Incoming:
    """A payload that comes in pieces: each is copied and added up while the cache still holds it, as others are coming.

    >>> data = bytearray(HEADER + 3)
    >>> write_header(Header(1, 32, len(data), bytes(16), NO_REFERENCE), memoryview(data))
    >>> incoming = Incoming(len(data))
    >>> for begin in range(0, len(data), 40):
    ...     incoming.add(bytes(data[begin : begin + 40]))
    >>> incoming.data == data, read_header(incoming.data, incoming.checksum).parameter
    (True, 32)
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.missing = length
        """How many bytes are still to come."""
        self._data = BytesIO(_unwritten(None, length))  # nobody else has these bytes: they are written in place
        self._sum = xxhash.xxh3_64()

    def add(self, piece: bytes | memoryview) -> None:
        """Take the next piece; refuse one that is longer than what is `missing`."""
        if len(piece) > self.missing:
            raise PayloadError(f"the payload goes on after its {self.length} bytes")
        at = self.length - self.missing
        self._data.write(piece)
        self.missing -= len(piece)
        if at < HEADER:
            self._sum.update(piece[: max(_FIELDS.size - at, 0)])
            piece = piece[HEADER - at :]
        self._sum.update(piece)

    @property
    def data(self) -> bytes:
        """The payload; as long as something is missing nobody knows what is in there, and it is refused."""
        if self.missing:
            raise PayloadError(f"the payload is cut off: {self.missing} of its {self.length} bytes are missing")
        return self._data.getvalue()

    @property
    def checksum(self) -> bytes:
        """What its checksum must be."""
        return _eight_bytes(self._sum)


def read_header(data: bytes | memoryview, checksum: bytes | None = None) -> Header:
    """Read the header of a whole payload whose length and checksum are right.

    `checksum` is what that must be, if somebody has computed it.

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
    if bytes(view[_SUM]) != (_checksum(view) if checksum is None else checksum):
        raise PayloadError("the payload's checksum does not match: it was damaged on its way")
    return Header(codec, parameter, length, schema, reference)


def _checksum(data: memoryview) -> bytes:
    digest = xxhash.xxh3_64(data[: _FIELDS.size])
    digest.update(data[HEADER:])
    return _eight_bytes(digest)


def _eight_bytes(digest: xxhash.xxh3_64) -> bytes:
    return digest.intdigest().to_bytes(8, "little")
