"""The byte form of an envelope: fixed fields, two names, a checksum, the payload. `docs/protocol.md` has the table.

Whatever is not well-formed raises `ProtocolError`. Lengths are checked before anything is sliced or allocated.
"""

import struct
import zlib

from pushcen.errors import ProtocolError
from pushcen.protocol.messages import LIMIT, Envelope, PeerId, check_id

MAGIC = b"PCEV"
MAJOR, MINOR = 1, 0
_FIXED = struct.Struct("<4sBBHQ16sQIBB")  # magic, major, minor, header, sequence, total, payload, part, names
_CHECK = struct.Struct("<I")
TOTAL_LIMIT = 2**128 - 1


def to_bytes(envelope: Envelope) -> bytes:
    """Write an envelope whose payload is bytes.

    >>> data = to_bytes(Envelope("a/1", "b/1", 0, 7, 550, b"model"))
    >>> len(data), from_bytes(data)
    (61, Envelope(sender='a/1', receiver='b/1', part=0, sequence=7, total=550, payload=b'model'))
    """
    if not isinstance(envelope.payload, bytes):
        raise ProtocolError(f"payload = {type(envelope.payload).__name__}: must be bytes to be written")
    return header_bytes(envelope, len(envelope.payload)) + envelope.payload


def header_bytes(envelope: Envelope, length: int) -> bytes:
    """Write all of an envelope but its payload of `length` bytes, which is sent after it."""
    sender, receiver, part, sequence, total, _ = envelope
    check_id(sender)
    check_id(receiver)
    for name, value, limit in (
        ("part", part, 2**32 - 1),
        ("sequence", sequence, LIMIT),
        ("total", total, TOTAL_LIMIT),
    ):
        if type(value) is not int or not 0 <= value <= limit:
            raise ProtocolError(f"{name} = {value!r}: must be a whole number from 0 to {limit}")
    names = [sender.encode(), receiver.encode()]
    size = _FIXED.size + sum(map(len, names)) + _CHECK.size
    fixed = _FIXED.pack(
        MAGIC, MAJOR, MINOR, size, sequence, total.to_bytes(16, "little"), length, part, *map(len, names)
    )
    header = fixed + b"".join(names)
    return header + _CHECK.pack(zlib.crc32(header))


def from_bytes(data: bytes) -> Envelope:
    """Read what `to_bytes` wrote. Fields of a newer minor version are skipped; a newer major version is refused."""
    envelope, size, length = read_header(data)
    if length != len(data) - size:
        raise ProtocolError(f"envelope says its payload has {length} bytes: it has {len(data) - size}")
    return envelope._replace(payload=bytes(data[size:]))


def read_header(data: bytes) -> tuple[Envelope, int, int]:
    """Read an envelope up to its payload; return it without one, the header's length, and the payload's.

    >>> read_header(header_bytes(Envelope("a/1", "b/1", 0, 7, 550, None), length=5))
    (Envelope(sender='a/1', receiver='b/1', part=0, sequence=7, total=550, payload=None), 56, 5)
    """
    if len(data) < _FIXED.size + _CHECK.size:
        raise ProtocolError(f"envelope of {len(data)} bytes: must be {_FIXED.size + _CHECK.size} or more")
    magic, major, _, size, sequence, total, length, part, sender_size, receiver_size = _FIXED.unpack_from(data)
    if magic != MAGIC:
        raise ProtocolError(f"envelope starts with {magic!r}: must be {MAGIC!r}")
    if major != MAJOR:
        raise ProtocolError(f"envelope of version {major}: this pushcen reads version {MAJOR}")
    names = _FIXED.size + sender_size + receiver_size
    if not names + _CHECK.size <= size <= len(data):
        raise ProtocolError(f"envelope's header of {size} bytes: must be {names + _CHECK.size} to {len(data)}")
    if zlib.crc32(data[: size - _CHECK.size]) != _CHECK.unpack_from(data, size - _CHECK.size)[0]:
        raise ProtocolError("envelope's header does not match its checksum")
    if sequence > LIMIT:
        raise ProtocolError(f"sequence = {sequence}: must be {LIMIT} at most")
    middle = _FIXED.size + sender_size
    sender, receiver = _name(data[_FIXED.size : middle]), _name(data[middle:names])
    return Envelope(sender, receiver, part, sequence, int.from_bytes(total, "little"), None), size, length


def _name(data: bytes) -> PeerId:
    try:
        return check_id(data.decode())
    except UnicodeDecodeError as error:
        raise ProtocolError(f"name {data!r}: must be UTF-8") from error
