"""The host's side of tunnels. A host carries bytes between two members and can read none: inside is their own TLS.

It stores nothing and answers for nobody. It can delay and drop, and sees who talks to whom, when and how much.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic

import grpc

from pushcen.errors import CertificateError
from pushcen.runtime.gate import Context, Gate, Slots
from pushcen.runtime.reach.pipe import ACCEPT, BROKEN, HOST, PIECE, TO, TUNNEL, pipe, until_one_ends
from pushcen.runtime.shared import Shared

_MEMBERS = 64  # that may all have as many tunnels as one may, at a time
_KNOCKS = 64  # tunnels to one peer that may wait for it to accept them
_ACCEPT = 10.0  # seconds that it has for that
_ASK_AGAIN = 5.0  # seconds after which it is asked again whether both ends still belong


@dataclass
class _Knock:
    """Somebody who wants a tunnel to a peer that has dialled out."""

    to: str
    accepted: "asyncio.Future[tuple[Context, bytes]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Its end of the tunnel, and its certificate."""
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Tunnels:
    """Hosts peers that nobody can dial, and carries what others have to say to them."""

    def __init__(self, shared: Shared, gate: Gate) -> None:
        self._identity, self._refused, self._metrics = shared.identity, shared.refused, shared.metrics
        self._rate = shared.settings.tunnel_mb_per_second * 2**20
        self._hosted: dict[str, asyncio.Queue[str]] = {}  # what each of them is told: who has knocked
        self._knocks: dict[str, _Knock] = {}
        self._free: dict[str, float] = {}  # when each member may send its next bytes
        slots, kind = (
            Slots(shared.settings.tunnels, 64 * shared.settings.tunnels),
            grpc.stream_stream_rpc_method_handler,
        )
        gate.add(HOST, kind, self._host, bounded=False, slots=slots)
        gate.add(TUNNEL, kind, self._tunnel, bounded=False, slots=slots)

    async def _host(self, caller: str, _requests: object, context: Context) -> None:
        """Tell a peer that nobody can dial of every tunnel to it, for as long as it listens."""
        knocks = self._hosted[caller] = asyncio.Queue(_KNOCKS)  # a newer stream of it takes the place of an older one
        self._count()
        shown = self._identity.shown(context)
        try:
            await context.write(b"hosted")
            while self._hosted.get(caller) is knocks:
                try:
                    async with asyncio.timeout(_ASK_AGAIN):
                        token = await knocks.get()
                except TimeoutError:
                    self._identity.member(shown, caller)
                else:
                    await context.write(token.encode())
        except CertificateError as error:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
        finally:
            if self._hosted.get(caller) is knocks:
                del self._hosted[caller]
            self._count()

    async def _tunnel(self, caller: str, _requests: object, context: Context) -> None:
        """Be one end of a tunnel: of who asks for it, or of who accepts it."""
        words = {key: str(value) for key, value in context.invocation_metadata() or ()}
        shown = self._identity.shown(context)
        if ACCEPT in words:
            knock = self._knocks.get(words[ACCEPT])
            if knock is None or knock.to != caller or knock.accepted.done():
                await self._turn_away(context, caller, "nobody waits at that tunnel")
                return
            knock.accepted.set_result((context, shown))
            await knock.over.wait()
            return
        to = words.get(TO, "")
        if not self.hosts(to):
            await self._turn_away(context, caller, f"{to!r:.70} is not hosted here, or has too much to answer")
            return
        try:
            async with self._opened(to) as (other, others):
                await context.send_initial_metadata(())  # which tells the caller that it may speak
                belong = self._belong((caller, shown), (to, others))
                await until_one_ends(self._copy(caller, context, other), self._copy(to, other, context), belong)
        except TimeoutError:
            await self._turn_away(context, caller, f"{to} does not accept")

    def hosts(self, to: str) -> bool:
        """Return whether a peer is hosted here, and has room for one more tunnel."""
        knocks = self._hosted.get(to)
        return knocks is not None and not knocks.full()

    async def lead(self, to: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lead what this very peer has to say to one that it hosts."""
        async with self._opened(to) as (other, shown):
            await until_one_ends(pipe(other, reader, writer), self._belong((to, shown)))

    @contextlib.asynccontextmanager
    async def _opened(self, to: str) -> AsyncIterator[tuple[Context, bytes]]:
        """Knock at a peer that is hosted here; yield its end of the tunnel and its certificate, once it accepts."""
        token, knock = secrets.token_hex(16), _Knock(to)
        self._knocks[token] = knock
        try:
            self._hosted[to].put_nowait(token)
            async with asyncio.timeout(_ACCEPT):
                other = await knock.accepted
            yield other
        finally:
            del self._knocks[token]
            knock.over.set()

    async def _copy(self, name: str, source: Context, target: Context) -> None:
        """Carry what a member sends, as fast as it may."""
        while (data := await source.read()) is not grpc.aio.EOF:
            if len(data) > PIECE:
                raise OSError(f"{name} sends {len(data)} bytes in one piece; {PIECE} at most")
            self._metrics.tunnel_bytes.inc(len(data))
            now = monotonic()
            self._free[name] = free = max(self._free.get(name, now), now - 1.0) + len(data) / self._rate
            if free > now:
                await asyncio.sleep(free - now)
            await target.write(data)

    async def _belong(self, *ends: tuple[str, bytes]) -> None:
        """Return as soon as one of them is no member any more."""
        while True:
            await asyncio.sleep(_ASK_AGAIN)
            try:
                for name, shown in ends:
                    self._identity.member(shown, name)
            except CertificateError as error:
                self._refused("certificate", "", str(error))
                return

    async def _turn_away(self, context: Context, caller: str, text: str) -> None:
        self._refused("tunnel", caller, text)
        try:
            await context.abort(grpc.StatusCode.UNAVAILABLE, text)
        except grpc.aio.AbortError:
            raise
        except BROKEN:  # it has hung up
            return

    def _count(self) -> None:
        self._metrics.hosted.set(len(self._hosted))
