"""`Piece` messages written and read with one copy of their data, where protobuf makes three each way.

The bytes are protobuf's own. Whatever does not look as `write_piece` makes it is read by protobuf.
"""

from collections.abc import AsyncIterator

from pushcen.runtime.wire.peer_pb2 import Piece

_ENVELOPE, _DATA, _PROGRESS = b"\x0a\x12\x1a"  # fields 1 to 3, all with a length
Bytes = bytes | memoryview


def write_piece(envelope: bytes, data: Bytes, progress: bytes = b"") -> bytes:
    """Write a piece; `progress` is a `Signed` that is written already.

    >>> write_piece(b"head", b"data") == Piece(envelope=b"head", data=b"data").SerializeToString()
    True
    """
    parts: list[Bytes | bytearray] = []
    for kind, field in ((_ENVELOPE, envelope), (_PROGRESS, progress), (_DATA, data)):
        if field:
            parts += (_begin(kind, len(field)), field)
    return b"".join(parts)


async def cut(envelope: bytes, data: bytes, progress: bytes, size: int) -> AsyncIterator[bytes]:
    """Yield data in pieces of so many bytes, of which the first has envelope and progress."""
    view = memoryview(data)
    yield write_piece(envelope, view[:size], progress)
    for begin in range(size, len(view), size):
        yield write_piece(b"", view[begin : begin + size])


def read_piece(message: bytes) -> tuple[bytes, bytes, Bytes]:
    """Read a piece: its envelope, its progress, and its data, which is not copied. Raises protobuf's DecodeError.

    >>> envelope, progress, data = read_piece(Piece(envelope=b"head", data=b"data").SerializeToString())
    >>> envelope, progress, bytes(data)
    (b'head', b'', b'data')
    """
    size, at, found = len(message), 0, {_ENVELOPE: b"", _PROGRESS: b""}
    for kind in found:
        if at < size and message[at] == kind:
            length, begin = _read_varint(message, at + 1)
            at = begin + length
            found[kind] = message[begin:at]
    if at < size and message[at] == _DATA:
        length, begin = _read_varint(message, at + 1)
        if begin + length == size:
            return found[_ENVELOPE], found[_PROGRESS], memoryview(message)[begin:]
    piece = Piece.FromString(message)
    return piece.envelope, piece.progress.SerializeToString() if piece.HasField("progress") else b"", piece.data


def _begin(kind: int, number: int) -> bytearray:
    """Return what stands before a field: its kind and its length."""
    found = bytearray((kind,))
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return found


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(message[at : at + 5]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    return 1 << 40, at  # no length that a message can have: protobuf will say so
