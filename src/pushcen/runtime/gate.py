"""The one gate that every call goes through, whatever it asks for: who calls, how often, and how many at a time.

What callers may ask of a peer is bounded: calls a second for each, calls, bytes and connections for all together.
"""

import asyncio
import resource
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import grpc

from pushcen.errors import CertificateError
from pushcen.runtime.shared import Shared

Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[str, Any, Context], Awaitable[Any]]
CALLS = 16
"""Calls of one caller that may run at a time; an honest one needs three or four."""
_LONGEST = 60.0  # seconds that a call may take, unless it sees to that itself: then it is asked again whose it is
_MOST = 4096  # callers that are remembered
_DESCRIPTORS = 65_536  # that a process asks for


def raise_descriptors() -> int:
    """Raise how many files and connections this process may have open to what the system allows; return it.

    >>> raise_descriptors() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections(known: int) -> int:
    """Return how many connections a peer takes in that knows so many others: at most half of its descriptors, so that
    the state and its own calls keep the rest.

    >>> connections(known=64)
    320
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * known + 64
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 2)


class Rate:
    """A bucket of tokens for each caller, filled at a rate, holding three seconds' worth.

    >>> rate = Rate(2.0)
    >>> [rate.allows("ann", now=0.0) for _ in range(7)]
    [True, True, True, True, True, True, False]
    >>> rate.allows("ann", now=1.0), rate.allows("bob", now=1.0)
    (True, True)
    """

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._most = max(1.0, 3 * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, caller: str, now: float) -> bool:
        """Return whether a caller may do one thing more, and count it."""
        tokens, then = self._buckets.pop(caller, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._rate)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - allowed, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return allowed


class Budget:
    """Bytes that may be under way at a time. One message always may, however large.

    >>> budget = Budget(100)
    >>> budget.take(70), budget.take(70), budget.used
    (True, False, 70)
    >>> budget.give(70)
    >>> budget.take(1000)
    True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are there."""
        if self.used and self.used + size > self._most:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Return them to the budget."""
        self.used -= size


class Slots:
    """Calls that may run at a time: so many of one caller, so many of all together.

    >>> slots = Slots(each=1, most=2)
    >>> [slots.take(name) for name in ("ann", "ann", "bob", "eve")]
    [True, False, True, False]
    """

    def __init__(self, each: int, most: int) -> None:
        self._each, self._most = each, most
        self._running: Counter[str] = Counter()

    def take(self, caller: str) -> bool:
        """Take a slot, if there is one."""
        if self._running[caller] >= self._each or self._running.total() >= self._most:
            return False
        self._running[caller] += 1
        return True

    def give(self, caller: str) -> None:
        """Give it back."""
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]


class Gate(grpc.GenericRpcHandler):
    """Finds what answers a call, and lets nobody through who does not belong or asks for too much."""

    def __init__(self, shared: Shared, rate: Rate, most: int) -> None:
        self._identity, self._refused, self._rate = shared.identity, shared.refused, rate
        self._slots = Slots(CALLS, most)
        self._handlers: dict[str, Any] = {}
        self._unknown: Any = grpc.unary_unary_rpc_method_handler(self._let(_unknown, True, self._slots))

    def add(
        self,
        path: str,
        kind: Callable[..., Any],
        behaviour: Behaviour,
        *codec: Any,
        bounded: bool = True,
        slots: Slots | None = None,
    ) -> None:
        """Answer calls of `path` by a coroutine, which is told who calls. Unless it sees to rate and time itself, both
        are `bounded` here. With `slots` of their own, such calls take none of the others'.
        """
        self._handlers[path] = kind(self._let(behaviour, bounded, slots or self._slots), *codec)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Find what answers a call."""
        return self._handlers.get(handler_call_details.method, self._unknown)

    def _let(self, behaviour: Behaviour, bounded: bool, slots: Slots) -> Callable[[Any, Context], Awaitable[Any]]:
        async def gated(request: Any, context: Context) -> Any:
            try:
                caller = self._identity.caller(context, _claimed(context))
            except (CertificateError, ValueError) as error:
                self._refused("certificate", "", str(error))
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
                raise  # never reached: abort raises
            if not slots.take(caller):
                await self._turn_away(context, caller, "busy", f"too many calls of {caller}, or of all, are under way")
            try:
                if not bounded:
                    return await behaviour(caller, request, context)
                if not self._rate.allows(caller, monotonic()):
                    await self._turn_away(context, caller, "rate", f"{caller} calls too often")
                try:
                    async with asyncio.timeout(_LONGEST):
                        return await behaviour(caller, request, context)
                except TimeoutError:
                    await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"over after {_LONGEST:.0f} s: ask again")
            finally:
                slots.give(caller)

        return gated

    async def _turn_away(self, context: Context, caller: str, reason: str, text: str) -> None:
        self._refused(reason, caller, text)
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, text)


def _claimed(context: Context) -> str:
    """Return what a caller calls itself: the last word of it counts."""
    claimed: Any = ""
    for key, value in context.invocation_metadata() or ():
        if key == "pushcen-name":
            claimed = value
    return str(claimed)


async def _unknown(_caller: str, _request: bytes, context: Context) -> None:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such call")
