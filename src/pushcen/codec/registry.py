"""The table of codecs: by number, as payloads name them, and by name, as people do."""

from pushcen.codec.centroids import Centroids
from pushcen.codec.codec import MARK, OWN, Codec, own_codecs
from pushcen.codec.dense import Dense
from pushcen.codec.fragment import Fragment
from pushcen.codec.lean import Lean
from pushcen.codec.low_rank import LowRank
from pushcen.codec.modulo import Modulo
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.top_k import TopK
from pushcen.codec.wire import Header
from pushcen.codec.with_mass import WithMass
from pushcen.errors import OptionError, PayloadError

NUMBERS: dict[int, type[Codec]] = {
    1: Centroids,
    2: Dense,
    3: Dense,
    4: Fragment,
    5: Lean,
    6: WithMass,
    7: TopK,
    8: Modulo,
    9: LowRank,
}
"""The codecs of pushcen, by their numbers on the wire."""


def codecs() -> dict[str, type[Codec]]:
    """Return every codec that is known here: those of pushcen first, then what has been imported.

    >>> list(codecs())[:3]
    ['centroids', 'dense', 'fragment']
    """
    return {kind.name: kind for kind in (*NUMBERS.values(), *own_codecs.values())}


def codec_of(header: Header, body: Bytes) -> Codec:
    """Return the codec that a payload names: one of those that are here. Nothing is imported, nothing allocated."""
    if header.codec not in OWN:
        kind = NUMBERS.get(header.codec)
        if kind is None:
            raise PayloadError(f"the payload has codec {header.codec}, which this pushcen does not know")
        return _read(kind, header, body)
    mark = body[:MARK].tobytes()
    kind = own_codecs.get(mark)
    if kind is None:
        here = ", ".join(f"{kind.name} ({mark.hex()})" for mark, kind in own_codecs.items()) or "none"
        raise PayloadError(
            f"the payload has codec {header.codec} with the mark {mark.hex()}, which is not imported here; "
            f"of those beside pushcen's own there is: {here}"
        )
    return _read(kind, header, body[MARK:])


def _read(kind: type[Codec], header: Header, body: Bytes) -> Codec:
    try:
        codec = kind.read(header, body)
    except OptionError as error:
        raise PayloadError(f"the payload is not of {kind.name}: {error}") from None
    if (codec.code, codec.parameter) != (header.codec, header.parameter):
        raise PayloadError(
            f"the payload has number {header.codec} and parameter {header.parameter}; "
            f"{codec} has {codec.code} and {codec.parameter}"
        )
    return codec
