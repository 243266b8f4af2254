"""The gRPC service of a peer: hello, gossip, push and reference.

Whatever comes in is checked before it is kept, or refused whole. Refusals change nothing. They are answers, counted
by reason and logged at a bounded rate; only a caller that is no member gets an error of gRPC instead.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

from pushcen.codec import Payload
from pushcen.codec.payload import bytes_to_check
from pushcen.codec.wire import Incoming
from pushcen.errors import AddressError, CertificateError, PayloadError, ProtocolError, PushcenError
from pushcen.learning import OFFER
from pushcen.protocol import Envelope, PeerId, epoch_of, name_of
from pushcen.protocol.messages import check_id, peer_id
from pushcen.protocol.wire import read_header
from pushcen.runtime.claims import Word
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.gate import CALLS, Behaviour, Budget, Context, Gate, Rate, connections
from pushcen.runtime.network import generation_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.reach.tunnels import Tunnels
from pushcen.runtime.shared import Refusal, Shared
from pushcen.runtime.wire import SERVICE, Hello, News
from pushcen.runtime.wire.pieces import Bytes, read_piece

_HEADER = 1024  # bytes that an envelope may have before its payload
_SMALL = 4 << 20  # bytes that are checked in the event loop
_NEWS = 1 << 20  # bytes that a piece may have beside its data, and gossip in all
_IDLE = 300_000  # milliseconds after which a connection with no call on it is closed
_REFERENCES = 0.1  # how many one caller may bring for each push that it may: they are some ten times as long
_EPOCHS = 10 / 3600  # new epochs a second that one name may show
Read = Callable[[], Awaitable[Any]]  # the next message of a call, or EOF: half the work of going through an iterator
_HEALTH = (health_pb2.HealthCheckRequest.FromString, health_pb2.HealthCheckResponse.SerializeToString)


class Service:
    """What others may ask of a peer."""

    def __init__(self, node: PeerNode, me: DurablePeer, shared: Shared) -> None:
        self._node, self._me, self._identity, self._members = node, me, shared.identity, shared.members
        self._log, self._refused, settings = shared.log, shared.refused, shared.settings
        self._metrics = shared.metrics
        self._timeout, self._claims = settings.push_timeout, me.claims
        self._calls = Rate(settings.calls_per_second)
        self._pushes = Rate(settings.pushes_per_second)
        self._epochs = Rate(_EPOCHS)
        self._shown: dict[str, int] = {}  # the latest epoch of each caller: one costs a token once, be it hello or push
        self._budget = Budget(settings.memory_mb << 20)
        self._arriving: set[tuple[str, int]] = set()
        self._offers, self._references = me.offers, Rate(_REFERENCES * settings.pushes_per_second)
        self._learner = learner = me.learner
        self._sizes, self._codecs = learner.sizes(), learner.update.codecs()
        self._longest = {
            part: self._sizes[part] + longest - codec.size(learner.schema)
            for part, codec in self._codecs.items()
            if (longest := codec.most(learner.schema)) is not None
        }
        self._piece = (settings.chunk_kb << 10) + _NEWS
        most = connections(settings.known)
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", self._piece),
                ("grpc.max_metadata_size", 16 << 10),
                ("grpc.max_concurrent_streams", CALLS + settings.tunnels),
                ("grpc.max_allowed_incoming_connections", most),
                ("grpc.server_handshake_timeout_ms", int(settings.handshake_timeout * 1000)),
                ("grpc.max_connection_idle_ms", _IDLE),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", int(settings.keepalive * 1000)),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 500),  # who has nothing to say may ping
            ],
            maximum_concurrent_rpcs=4 * most + 64 * settings.tunnels,  # with those that are about to be turned away
        )
        gate = self.gate = Gate(shared, self._calls, most)
        single, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_unary_rpc_method_handler
        gate.add(f"/{SERVICE}/Hello", single, self._single(self._hello), bounded=False)
        gate.add(f"/{SERVICE}/Gossip", single, self._single(self._gossip), bounded=False)
        gate.add(f"/{SERVICE}/Push", stream, self._push, bounded=False)
        if self._offers is not None:
            gate.add(f"/{SERVICE}/Reference", stream, self._reference, bounded=False)
        if settings.tunnels:
            node.tunnels = Tunnels(shared, gate)
        self._health = health.aio.HealthServicer()
        gate.add("/grpc.health.v1.Health/Check", single, lambda _, *call: self._health.Check(*call), *_HEALTH)
        watch = grpc.unary_stream_rpc_method_handler
        gate.add("/grpc.health.v1.Health/Watch", watch, lambda _, *call: self._health.Watch(*call), *_HEALTH)
        self._server.add_generic_rpc_handlers((gate,))

    async def start(self, listen: str) -> int:
        """Listen; return the port."""
        try:
            port = self._identity.listen(self._server, listen)
        except RuntimeError as error:
            raise AddressError(f"listen = {listen}: cannot be listened on; is another process there?") from error
        await self._server.start()
        await self._health.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self) -> None:
        """Answer nobody any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):  # who watches and does not read must not hold this up
                await self._health.enter_graceful_shutdown()
        await self._server.stop(0.5)

    def _single(self, answer: Callable[[str, bytes], bytes]) -> Behaviour:
        async def handle(caller: str, data: bytes, _context: Context) -> bytes:
            try:
                if not self._calls.allows(caller, monotonic()):
                    raise Refusal("rate", f"{caller} calls too often")
                return answer(caller, data)
            except Exception as error:
                return self._refusal(caller, error)

        return handle

    def _hello(self, caller: str, data: bytes) -> bytes:
        hello = Hello.FromString(data)
        peer = check_id(hello.peer)
        if name_of(peer) == caller and generation_of(peer) == self._me.generation.number:
            self._check_epoch(caller, peer)
        return self._node.greet(caller, hello).SerializeToString()

    def _gossip(self, _caller: str, data: bytes) -> bytes:
        news = News.FromString(data)
        self._node.gossip(news)
        return self._node.news(news.have).SerializeToString()

    async def _push(self, caller: str, _pieces: object, context: Context) -> bytes:
        try:
            if not self._pushes.allows(caller, monotonic()):
                raise Refusal("rate", f"{caller} pushes too often")
            return (await self._receive(caller, context.read)).SerializeToString()
        except Exception as error:
            return self._refusal(caller, error)

    async def _receive(self, caller: str, read: Read) -> Hello:
        """Take one envelope in."""
        async with asyncio.timeout(self._timeout):
            head, progress, first = read_piece(_piece(await read()))
            envelope, length = self._header(caller, head)
            word, schema = self._word(progress, envelope), self._learner.schema
            bases = {} if self._offers is None else self._offers.base(first)
            self._make_room(caller, envelope.part, length)
            try:
                data = await self._rest(length, first, read)
                if length <= _SMALL or bytes_to_check(data, schema) <= _SMALL:
                    payload = Payload.parse(data, schema, bases)
                else:
                    loop = asyncio.get_running_loop()
                    payload = await loop.run_in_executor(None, Payload.parse, data, schema, bases)
                self._learner.check(envelope.part, payload, self._codecs)
            finally:
                self._give_room(caller, envelope.part, length)
        return self._node.take(envelope, payload, word)

    async def _reference(self, caller: str, _pieces: object, context: Context) -> bytes:
        try:
            if not self._references.allows(caller, monotonic()):
                raise Refusal("rate", f"{caller} brings references too often")
            await self._receive_reference(caller, context.read)
            return self._node.hello(None, name=caller).SerializeToString()
        except Exception as error:
            return self._refusal(caller, error)

    async def _receive_reference(self, caller: str, read: Read) -> None:
        """Take one reference in, unless it is here."""
        offers = self._offers
        assert offers is not None
        async with asyncio.timeout(self._timeout) as limit:
            head, word, first = read_piece(_piece(await read()))
            if head:
                raise Refusal("malformed", "a reference in an envelope")
            self._node.check_open()
            offer = offers.read_offer(word)
            if offer.name in offers.names.held:
                return
            offers.check_first(first)
            self._make_room(caller, OFFER, offers.size)
            try:
                data = await self._rest(offers.size, first, read)
                payload = await asyncio.get_running_loop().run_in_executor(None, offers.read, offer, data)
                limit.reschedule(None)
                held = await self._me.hold(offers, offer, payload)
            finally:
                self._give_room(caller, OFFER, offers.size)
        if not held:
            raise Refusal("reference", f"{offer.name} is older than those held here")
        self._metrics.bytes.labels("in").inc(offers.size)
        self._metrics.references.labels("in").inc()

    def _make_room(self, caller: str, part: int, length: int) -> None:
        """Take memory for what a caller sends, of which one may arrive at a time; `_give_room` gives it back."""
        if (caller, part) in self._arriving:
            raise Refusal("busy", f"an envelope of {caller} is arriving already")
        if not self._budget.take(length):
            raise Refusal("busy", f"no room for {length} bytes more")
        self._arriving.add((caller, part))

    def _give_room(self, caller: str, part: int, length: int) -> None:
        self._arriving.discard((caller, part))
        self._budget.give(length)

    def _header(self, caller: str, data: bytes) -> tuple[Envelope, int]:
        """Read an envelope's header, and refuse what could not be taken in, before its payload is read."""
        if len(data) > _HEADER:
            raise Refusal("oversized", f"an envelope with a header of {len(data)} bytes; {_HEADER} at most")
        envelope, size, length = read_header(data)
        if size != len(data):
            raise Refusal("malformed", f"an envelope's header of {size} bytes in a field of {len(data)}")
        self._node.check_push(caller, envelope)
        self._check_epoch(caller, envelope.sender)
        if envelope.part not in self._sizes:
            raise Refusal("malformed", f"part {envelope.part}: must be one of {sorted(self._sizes)}")
        longest = self._longest.get(envelope.part)
        if length > longest if longest else length != self._sizes[envelope.part]:
            size = longest or self._sizes[envelope.part]
            reason = "oversized" if length > size else "payload"
            raise Refusal(reason, f"a payload of {length} bytes; here it has {size}{' at most' if longest else ''}")
        self._node.check_mass(envelope)
        return envelope, length

    def _word(self, data: bytes, envelope: Envelope) -> Word | None:
        """Read the sender's word on how far it has come, if it sent one, as it does since version 1.1."""
        try:
            return self._claims.read(data, envelope) if data else None
        except CertificateError as error:
            raise Refusal("record", str(error)) from error

    @staticmethod
    async def _rest(length: int, first: Bytes, read: Read) -> Incoming:
        """Read a payload, never more of it than was announced."""
        incoming, data = Incoming(length), first
        while len(data) <= incoming.missing:
            incoming.add(data)
            if not incoming.missing:
                return incoming
            message = await read()
            if message is grpc.aio.EOF:
                raise Refusal("malformed", f"a payload of {length - incoming.missing} bytes that was to have {length}")
            head, progress, data = read_piece(message)
            if head or progress or not data:
                raise Refusal("malformed", "a piece of a payload with no data, or with another envelope")
        raise Refusal("malformed", f"a payload that goes on after its {length} bytes")

    def _check_epoch(self, name: str, peer: PeerId) -> None:
        """Refuse an epoch that is earlier than those known of a name, or later and shown too soon after another.

        The first one that is shown in a new generation is not of the peer's own choice.
        """
        epoch = epoch_of(peer)
        known = max(self._shown.get(name, 0), self._me.peer.latest_epoch(name))
        if contact := self._members.contact(name):
            known = max(known, epoch_of(contact.peer))
        if epoch < known:
            raise Refusal("epoch", f"{name}/{epoch} speaks, which is {name}/{known} by now")
        same = epoch > known > 0 and generation_of(peer_id(name, known)) == generation_of(peer)
        if same and not self._epochs.allows(name, monotonic()):
            raise Refusal("rate", f"{name} shows a new epoch too often")
        self._shown[name] = epoch

    def _refusal(self, caller: str, error: Exception) -> bytes:
        """Count what went wrong in a call as a refusal, and return the answer."""
        reason, text = "malformed", str(error)
        match error:
            case Refusal():
                reason = error.reason
            case DecodeError():
                text = "not a message of this service"
            case PayloadError():
                reason = "payload"
            case PushcenError() | ProtocolError() | ValueError():
                pass
            case TimeoutError():
                reason, text = "timeout", "nothing came for too long"
            case _:  # a mistake of ours must not let a caller fill the log or stop the peer
                reason, text = "internal", repr(error)
                self._log.seldom("internal", "a call failed", trace=True)
        self._refused(reason, caller, text)
        return self._node.refusal(caller, Refusal(reason, text)).SerializeToString()


def _piece(message: Any) -> bytes:
    """Return the first message of a call, if there is one."""
    if message is grpc.aio.EOF:
        raise DecodeError("nothing came")
    return bytes(message)
