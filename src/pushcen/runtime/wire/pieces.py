"""`Piece` messages written and read with one copy of their data, where protobuf makes three each way.

The bytes are protobuf's own. Whatever does not look as `write_piece` makes it is read by protobuf.
"""

from pushcen.runtime.wire.peer_pb2 import Piece

_ENVELOPE, _DATA = 0x0A, 0x12  # fields 1 and 2, both of bytes
Bytes = bytes | memoryview


def write_piece(envelope: bytes, data: Bytes) -> bytes:
    """Write a piece.

    >>> write_piece(b"head", b"data") == Piece(envelope=b"head", data=b"data").SerializeToString()
    True
    """
    head = (bytes((_ENVELOPE,)), _varint(len(envelope)), envelope) if envelope else ()
    return b"".join((*head, bytes((_DATA,)), _varint(len(data)), data) if data else head)


def read_piece(message: bytes) -> tuple[bytes, Bytes]:
    """Read a piece: its envelope and its data, which is not copied. Raises protobuf's DecodeError.

    >>> envelope, data = read_piece(Piece(envelope=b"head", data=b"data").SerializeToString())
    >>> envelope, bytes(data)
    (b'head', b'data')
    """
    size, at, envelope = len(message), 0, b""
    if size > 2 and message[0] == _ENVELOPE and message[1] < 0x80:
        at = 2 + message[1]
        envelope = message[2:at]
    if at < size and message[at] == _DATA:
        length, begin = _read_varint(message, at + 1)
        if begin + length == size:
            return envelope, memoryview(message)[begin:]
    piece = Piece.FromString(message)
    return piece.envelope, piece.data


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(message[at : at + 5]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    return 1 << 40, at  # no length that a message can have: protobuf will say so
