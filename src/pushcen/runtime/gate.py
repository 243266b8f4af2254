"""The one gate that every call goes through, whatever it asks for: who calls, how often, and how many at a time."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc

from pushcen.errors import CertificateError
from pushcen.runtime.limits import Rate
from pushcen.runtime.node import PeerNode

Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[str, Any, Context], Awaitable[Any]]
CALLS = 16
"""Calls of one caller that may run at a time; an honest one needs three or four."""
_LONGEST = 60.0  # seconds that a call may take, unless it sees to that itself: then it is asked again whose it is


class Gate(grpc.GenericRpcHandler):
    """Finds what answers a call, and lets nobody through who does not belong or asks for too much."""

    def __init__(self, node: PeerNode, rate: Rate, most: int) -> None:
        self._node, self._rate, self._most = node, rate, most
        self._running: Counter[str] = Counter()
        self._handlers: dict[str, Any] = {}
        self._unknown: Any = grpc.unary_unary_rpc_method_handler(self._let(_unknown, bounded=True))

    def add(self, path: str, kind: Callable[..., Any], behaviour: Behaviour, *codec: Any, bounded: bool = True) -> None:
        """Answer calls of `path` by a coroutine, which is told who calls. Unless it sees to rate and time itself, both
        are `bounded` here.
        """
        self._handlers[path] = kind(self._let(behaviour, bounded), *codec)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Find what answers a call."""
        return self._handlers.get(handler_call_details.method, self._unknown)

    def _let(self, behaviour: Behaviour, bounded: bool) -> Callable[[Any, Context], Awaitable[Any]]:
        async def gated(request: Any, context: Context) -> Any:
            caller = await self._caller(context)
            if self._running[caller] >= CALLS or self._running.total() >= self._most:
                await self._turn_away(context, caller, "busy", f"too many calls of {caller}, or of all, are under way")
            with self._counted(caller):
                if not bounded:
                    return await behaviour(caller, request, context)
                if not self._rate.allows(caller, self._node.now):
                    await self._turn_away(context, caller, "rate", f"{caller} calls too often")
                try:
                    async with asyncio.timeout(_LONGEST):
                        return await behaviour(caller, request, context)
                except TimeoutError:
                    await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"over after {_LONGEST:.0f} s: ask again")

        return gated

    async def _caller(self, context: Context) -> str:
        """Name who calls; who is no member is turned away."""
        claimed = dict(context.invocation_metadata() or ()).get("pushcen-name", "")
        try:
            return self._node.identity.caller(context, str(claimed))
        except (CertificateError, ValueError) as error:
            self._node.refused("certificate", "", str(error))
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            raise  # never reached: abort raises

    async def _turn_away(self, context: Context, caller: str, reason: str, text: str) -> None:
        self._node.refused(reason, caller, text)
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    @contextlib.contextmanager
    def _counted(self, caller: str) -> Iterator[None]:
        self._running[caller] += 1
        try:
            yield
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]


async def _unknown(_caller: str, _request: bytes, context: Context) -> None:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such call")
