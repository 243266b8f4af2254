"""How a peer is asked how it is, and how its answer is read: it is not trusted, and refused whole if it is wrong."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from pushcen.errors import CertificateError, NetworkError
from pushcen.measure import Measure, read
from pushcen.protocol import name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.facts import MODELS, PARTS, Fact
from pushcen.runtime.health import LEVELS
from pushcen.runtime.logs import printable
from pushcen.runtime.members import check_address
from pushcen.runtime.network import ANY, NAME, check_name
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.status import Status, status_of
from pushcen.runtime.views import AT_ONCE, PATH
from pushcen.runtime.wire import Look, View

_LONGEST = 4 << 20  # bytes of an answer
_MOST = 2**53 - 1
_HUGE = 1e300
_ADDRESSES = re.compile(r"failed to connect to all addresses; last error: (UNKNOWN: )?ipv[46]:\S+: ")
_QUANTA = re.compile(r"[0-9]{1,30}")
_WORD = re.compile(r"[a-z][a-z ]{0,29}")


@dataclass(frozen=True)
class PeerView:
    """What a peer says of itself, checked. Times are by its own clock, of which `now` is the newest."""

    name: str
    life: int
    """Another number after a restart."""
    last: int
    """The number of the last fact."""
    now: float
    founded: int
    """All mass that there ever was, in quanta; 0 if its method moves none."""
    held: int
    waiting: int
    measure: Measure
    status: Status
    facts: list[Fact]


class WatchedPeer:
    """A peer that is asked how it is, again and again."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._life = self._after = 0

    async def look(self) -> PeerView:
        """Return how it is, and what is new; or raise a `NetworkError` that says why not."""
        raise NotImplementedError

    async def close(self) -> None:
        """Hang up."""

    def _read(self, data: bytes) -> PeerView:
        view = read_view(data)
        self._life, self._after = view.life, view.last
        return view


class PeerHere(WatchedPeer):
    """The peer of this process; `view` may be called from any thread."""

    def __init__(self, view: Callable[[int, int], bytes]) -> None:
        super().__init__("here")
        self._view = view

    async def look(self) -> PeerView:
        """Return how it is, and what is new; or raise a `NetworkError` that says why not."""
        return self._read(self._view(self._life, self._after))


class RemotePeer(WatchedPeer):
    """A peer at an address. Who it is, its certificate says: what somebody else says there is not believed."""

    def __init__(self, identity: Identity, address: str, timeout: float = 5.0, name: str = ANY) -> None:
        super().__init__(address if name != ANY else check_address(address))
        self.identity, self._timeout = identity, timeout
        self._meant = self._name = name
        self._channel: grpc.aio.Channel | None = None

    async def look(self) -> PeerView:
        """Return how it is, and what is new; or raise a `NetworkError` that says why not."""
        if self._name == ANY:
            name = read_view(await self._ask()).name
            await self.close()
            self._name = name  # which the certificate shows when it is asked again
        view = self._read(await self._ask())
        if view.name != self._name:
            raise NetworkError(f"{self.address}: is {self._name}, and calls itself {view.name}")
        return view

    async def _ask(self) -> bytes:
        if self._channel is None:
            options: list[tuple[str, Any]] = [("grpc.max_receive_message_length", _LONGEST), ("grpc.enable_retries", 0)]
            self._channel = await self._open(options)
        call: Any = self._channel.unary_unary(PATH)
        look = Look(life=self._life, after=self._after).SerializeToString()
        metadata = grpc.aio.Metadata(("pushcen-name", self.identity.name))
        try:
            return bytes(View.FromString(await call(look, timeout=self._timeout, metadata=metadata)).json)
        except grpc.aio.AioRpcError as error:
            await self.close()
            self._name = self._meant  # somebody else may be there by now
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise NetworkError("shows nothing: it has runtime.watched = false, or an earlier version") from None
            said = _ADDRESSES.sub("", error.details() or "")
            raise NetworkError(printable(f"{error.code().name}: {said}")) from None
        except DecodeError:
            raise NetworkError("does not answer as a peer does") from None

    async def _open(self, options: list[tuple[str, Any]]) -> grpc.aio.Channel:
        return self.identity.channel(self.address, self._name, options)

    async def close(self) -> None:
        """Hang up."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def read_view(data: bytes) -> PeerView:
    """Return a view out of what somebody says; what is not as it should be is refused whole.

    >>> read_view(b"[]")
    Traceback (most recent call last):
    pushcen.errors.NetworkError: it says of itself what cannot be: no object
    """
    try:
        said = json.loads(data)
        if not isinstance(said, dict) or not isinstance(said.get("status"), dict):
            raise ValueError("no object")
        status, facts = status_of(said["status"]), said.get("facts")
        if not isinstance(facts, list) or len(facts) > AT_ONCE:
            raise ValueError("facts")
        peer = status.peer
        return PeerView(
            check_name(name_of(check_id(peer)) if "/" in peer else peer),
            _whole(said.get("life")),
            _whole(said.get("last")),
            _number(said.get("now")),
            int(_text(said.get("founded"), _QUANTA)),
            int(_text(said.get("held"), _QUANTA)),
            int(_text(said.get("waiting"), _QUANTA)),
            read(said)[0],
            status,
            [_fact(one) for one in facts],
        )
    except (ValueError, TypeError, KeyError, RecursionError, CertificateError) as error:
        raise NetworkError(f"it says of itself what cannot be: {printable(error, 100)}") from None


def _fact(line: Any) -> Fact:
    if not isinstance(line, list) or len(line) < 2 or line[0] not in _KINDS or not isinstance(line[0], str):
        raise ValueError("a fact of no kind")
    checks = _KINDS[line[0]]
    if len(line) != len(checks) + 2:
        raise ValueError(f"a fact {line[0]!r} of {len(line)} parts")
    return [line[0], _number(line[1]), *(check(value) for check, value in zip(checks, line[2:], strict=True))]


def _whole(value: Any, most: int = _MOST) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is not a whole number up to {most}")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= _MOST:
        raise ValueError(f"{value!r:.40} is not a number")
    return float(value)


def _score(value: Any) -> float | None:
    if value is not None and (type(value) not in (int, float) or not abs(value) <= _HUGE):
        raise ValueError(f"{value!r:.40} is no score")
    return None if value is None else float(value)


def _text(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{value!r:.40} is not {form.pattern}")
    return value


def _name(value: Any) -> str:
    return _text(value, NAME)


def _merged(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) % 3 or len(value) > 3 * MODELS:
        raise ValueError("models that were merged")
    return [(_name, lambda one: _whole(one, PARTS), _whole)[at % 3](one) for at, one in enumerate(value)]


def _level(value: Any) -> str:
    if value not in LEVELS:
        raise ValueError(f"{value!r:.40} is no level")
    return str(value)


def _word(value: Any) -> str:
    return _text(value, _WORD)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is neither true nor false")
    return value


def _some_name(value: Any) -> str:
    return _name(value) if value else ""


def _kind(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return printable(value, 100)


_KINDS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "m": (_whole, lambda value: _text(value, _QUANTA), _merged, _score, _score),
    "f": (),
    "x": (_name, lambda value: _whole(value, PARTS)),
    "s": (_name, _whole, _word),
    "a": (_name, _whole, _flag),
    "r": (_some_name, _word),
    "w": (_kind, _level),
    "p": (_word,),
}
