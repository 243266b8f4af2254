"""The caller's side: channels to neighbours, hellos, gossip, and pushes in the background."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from time import monotonic
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from pushcen.errors import PushcenError
from pushcen.protocol import ANSWER, Envelope, name_of
from pushcen.protocol.messages import check_id
from pushcen.protocol.wire import header_bytes
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.gate import Budget
from pushcen.runtime.line import OPTIONS, Line, short
from pushcen.runtime.members import hosts_of
from pushcen.runtime.network import ANY, check_name
from pushcen.runtime.node import PeerNode
from pushcen.runtime.offers import Offers
from pushcen.runtime.reach.bridges import Bridges
from pushcen.runtime.shared import Refusal, Shared
from pushcen.runtime.wire import Hello
from pushcen.runtime.wire.pieces import cut, write_piece

OUTCOMES = {
    "news", "old", "malformed", "oversized", "payload", "mass", "epoch", "rate", "busy", "timeout", "run", "version",
    "record", "leaving", "starting", "generation", "internal", "reference", "unasked",
}  # fmt: skip
"""The outcomes of a push that is answered; whatever else a receiver says is counted as `other`."""
_USUAL = ("busy", "rate", "epoch", "leaving", "starting", "reference", "unasked")  # refusals that need no words
_FOR_NOW = ("busy", "rate", "timeout", "leaving", "starting", "generation")  # refusals of a reference that may pass
_ERRANDS = 4  # peers without a kept line that are called at a time
_ERRORS = (grpc.aio.AioRpcError, grpc.aio.BaseError, PushcenError, Refusal, DecodeError, TimeoutError, ValueError)


class Channels:
    """All lines of a peer. Pushes wait for no answer; of each receiver at most one is under way and one waits.

    Among many peers lines are kept to some, by `Members.near`. For the others a line is opened when there is something
    to send, to few at a time, and closed again.
    """

    def __init__(self, node: PeerNode, me: DurablePeer, shared: Shared) -> None:
        self._node, self._me, self._identity, self._settings = node, me, shared.identity, shared.settings
        self._members, self._log, self._metrics, self._seen = shared.members, shared.log, shared.metrics, shared.seen
        self._pace, self._lines = shared.pace, dict[str, Line]()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, dict[tuple[int, int], Envelope]] = {}
        self._errands, self._called = asyncio.Semaphore(_ERRANDS), Counter[str]()
        self._budget = Budget(self._settings.memory_mb << 20)
        self._room, self._tasks = asyncio.Event(), set[asyncio.Task[Any]]()
        proxy = ("grpc.http_proxy", f"http://{shared.proxy}") if shared.proxy else ("grpc.enable_http_proxy", 0)
        alive = ("grpc.keepalive_time_ms", int(self._settings.keepalive * 1000))
        self._more: list[tuple[str, Any]] = [proxy, alive]
        self._bridges = Bridges(shared, self.open, lambda: node.tunnels)

    def open(self, address: str, name: str) -> grpc.aio.Channel:
        """Open a channel to the peer of this name, where it listens, or through those who host it."""
        place = self._bridges.address(name) if hosts_of(address) else address
        return self._identity.channel(place, name, [*OPTIONS, *self._more])

    def ask(self, name: str) -> asyncio.Task[None]:
        """Say hello to a peer, unless that is being done."""
        if name not in self._asking:
            task = self._asking[name] = self.spawn(self._on_line(name, partial(self._ask, name)))
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return self._asking[name]

    async def ask_all(self, timeout: float) -> None:
        """Say hello to everybody, and wait no longer than `timeout` for those that are asked at a time."""
        asked = [self.ask(name) for name in self._members.all]
        others = sum(not self._members.near(name) for name in self._members.all)
        if asked:
            await asyncio.wait(asked, timeout=timeout * (1 + -(-others // _ERRANDS)))

    async def greet(self, address: str, name: str = ANY) -> Hello | None:
        """Say hello to whoever listens at an address, to learn its name; or to a peer of that name, if it is there."""
        channel = self.open(address, name)
        line = Line(channel, address, self._identity.name)
        try:
            with self._pace.timed():
                hello = await line.hello(self._node.hello(None), self._pace.timeout)
            self._node.check(check_name(name_of(check_id(hello.peer)) if name == ANY else name), hello)
            self._seen.answered(address)
            return hello
        except _ERRORS as error:
            self._seen.unanswered(address, short(error))
            self._log.seldom(f"join {address}", "no answer yet", address=address, text=short(error))
            return None
        finally:
            await channel.close()

    def send(self, envelopes: Iterable[Envelope]) -> None:
        """Push envelopes, each in its own time.

        A newer one to the same receiver takes the place of one that waits, but for answers: each completes an exchange.
        """
        for envelope in envelopes:
            name = name_of(envelope.receiver)
            place = (envelope.part, envelope.sequence if envelope.part == ANSWER else 0)
            if name in self._waiting:
                self._waiting[name][place] = envelope
                continue
            self._waiting[name] = {place: envelope}
            self.spawn(self._deliver(name))

    async def gossip(self, name: str) -> None:
        """Exchange news with a peer; pass on what it turns out not to have."""
        await self._on_line(name, partial(self._gossip, name))

    async def _gossip(self, name: str) -> None:
        try:
            line = self._line(name)
            news = await line.gossip(self._node.news(), self._pace.timeout)
            self._node.gossip(news)
            if (more := self._node.news(news.have)).records:
                await line.gossip(more, self._pace.timeout)
        except _ERRORS as error:
            self._log.seldom(f"gossip {name}", "no news", neighbour=name, text=short(error))

    async def drain(self, timeout: float) -> None:
        """Wait for pushes that are under way."""
        pending = [task for task in self._tasks if not task.done()]
        if pending:
            await asyncio.wait(pending, timeout=timeout)

    async def tidy(self) -> None:
        """Close lines to peers that are not known any more, and idle ones that are not kept."""
        for name in list(self._lines):
            if name not in self._members.all:
                await self._lines.pop(name).close()
            else:
                self._hang_up(name)
        self._bridges.keep(self._lines)

    async def close(self) -> None:
        """Hang up on all."""
        for task in list(self._tasks):
            task.cancel()
        await self.drain(1.0)
        for name in list(self._lines):
            await self._lines.pop(name).close()
        await self._bridges.close()

    async def _ask(self, name: str) -> None:
        if (member := self._members.all.get(name)) is None:
            return
        member.tried = monotonic()
        try:
            with self._pace.timed():
                hello = await self._line(name).hello(self._node.first_hello(name), self._pace.timeout)
            self._node.answered(name, hello)
        except _ERRORS as error:
            self._silent(name, error)

    async def _deliver(self, name: str) -> None:
        try:
            await self._on_line(name, partial(self._push_all, name))
        finally:
            del self._waiting[name]

    async def _push_all(self, name: str) -> None:
        while waits := self._waiting[name]:
            await self._push(name, waits.pop(next(iter(waits))))

    async def _on_line(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something with a peer: at once if a line is kept to it, else in its turn, and hang up after that."""
        if self._members.near(name):
            await self._call(name, work)
        else:
            async with self._errands:
                await self._call(name, work)

    async def _call(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._called[name] += 1
        try:
            await work()
        finally:
            self._called[name] -= 1
            if not self._called[name]:
                del self._called[name]
            self._hang_up(name)

    def _hang_up(self, name: str) -> None:
        """Hang up, unless a line is kept or in use."""
        if name in self._lines and not self._called[name] and not self._members.near(name):
            self.spawn(self._lines.pop(name).close(self._settings.push_timeout))

    async def _push(self, name: str, envelope: Envelope) -> None:
        payload = envelope.payload[envelope.part]
        while not self._budget.take(len(payload)):
            self._room.clear()
            await self._room.wait()
        try:
            if envelope.sender != self._me.peer.me:
                return  # it is of an earlier epoch, whose mass counts no more
            if envelope.part == ANSWER and not self._is_there(name, envelope):
                await self._ask(name)  # who asks need not have been asked
            if not self._is_there(name, envelope) or not (
                self._line(name).is_ready() or await self._line(name).ready(self._pace.timeout)
            ):
                self._failed(envelope)
                return
            line = self._line(name)
            if self._me.offers is not None and not await self._bring(name, line, self._me.offers, payload.reference):
                self._failed(envelope)
                return
            self._metrics.bytes.labels("out").inc(len(payload))
            hello = await line.push(self._pieces(envelope, payload.data), self._settings.push_timeout)
            self._node.answered(name, hello)
            outcome = hello.refusal or ("news" if hello.news else "old")
            outcome = outcome if outcome in OUTCOMES else "other"
            self._metrics.pushes.labels(outcome).inc()
            self._seen.facts.pushed(name, len(payload), outcome)
            if outcome == "news":
                self._seen.took.note(name)
            if hello.refusal and hello.refusal not in _USUAL:
                self._log.seldom(f"push {name}", "a push was refused", neighbour=name, text=hello.text)
        except _ERRORS as error:
            self._metrics.pushes.labels("doubt").inc()
            self._seen.facts.pushed(name, len(payload), "doubt")
            self._silent(name, error)
        finally:
            self._budget.give(len(payload))
            self._room.set()

    async def _bring(self, name: str, line: Line, offers: Offers, fingerprint: bytes | None) -> bool:
        """Bring the reference that a payload is the difference to, unless it is there; return whether it is."""
        member = self._members.all.get(name)
        if offers.is_start(fingerprint) or (member and fingerprint in member.holds.values()):
            return True
        if member is None or (held := offers.find(fingerprint)) is None:
            return False
        try:
            word = held.offer.signed.SerializeToString()
            pieces = cut(b"", held.payload.data, word, self._settings.chunk_kb << 10)
            self._metrics.bytes.labels("out").inc(len(held.payload))
            self._metrics.references.labels("out").inc()
            hello = await line.reference(pieces, self._settings.push_timeout)
            self._node.answered(name, hello)
        except _ERRORS as error:
            self._silent(name, error)
            return False
        if hello.refusal and hello.refusal not in _FOR_NOW:
            self._members.refuses(name, held.offer.fingerprint)
            self._log.seldom(f"reference {name}", "a reference was refused", neighbour=name, text=hello.text)
        return not hello.refusal

    def _pieces(self, envelope: Envelope, data: bytes) -> AsyncIterator[bytes] | bytes:
        header, word = header_bytes(envelope, len(data)), self._me.progress().SerializeToString()
        if len(data) <= (size := self._settings.chunk_kb << 10):
            return write_piece(header, data, word)
        return cut(header, data, word, size)

    def _is_there(self, name: str, envelope: Envelope) -> bool:
        """Return whether a peer is who an envelope is for; of those whom no line is kept to, one that answers."""
        member = self._members.all.get(name)
        if member is None or member.contact is None or member.contact.peer != envelope.receiver:
            return False
        return not member.failures or self._members.near(name)

    def _failed(self, envelope: Envelope) -> None:
        """Take back what an envelope added of which no byte has left."""
        self._metrics.pushes.labels("failed").inc()
        if envelope.sender == self._me.peer.me:
            self._me.peer.failed(envelope)

    def _silent(self, name: str, error: BaseException) -> None:
        self._seen.unanswered(name, short(error))
        self._log.seldom(f"silent {name}", "no answer", neighbour=name, text=short(error))
        if self._members.silent(name, monotonic()):
            self._log.say("left out of the view", neighbour=name)

    def _line(self, name: str) -> Line:
        member = self._members.all.get(name)
        if member is None:
            raise Refusal("unknown", f"{name} is not known any more")
        line, certificate = self._lines.get(name), self._identity.serial
        if line is None or (line.address, line.certificate) != (member.address, certificate):
            if line is not None:
                self.spawn(line.close(self._settings.push_timeout))
            channel, own = self.open(member.address, name), self._identity.name
            line = self._lines[name] = Line(channel, member.address, own, certificate)
        return line

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something in the background, until the channels are closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._log.seldom(f"bug {error!r:.200}", "a task failed", text=repr(error))
