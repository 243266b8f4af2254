"""One channel to one neighbour, and the calls that are made on it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from pushcen.runtime.wire import SERVICE, Hello, News

OPTIONS = [
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),  # as many as it takes
]
"""Of every channel: what is lost is said at once, and a connection that hangs is found out."""


class Line:
    """A channel to one neighbour, and its calls."""

    def __init__(self, channel: grpc.aio.Channel, address: str, name: str, certificate: int = 0) -> None:
        self.address, self.certificate = address, certificate
        self._channel = channel
        self._hello: Any = channel.unary_unary(f"/{SERVICE}/Hello")
        self._gossip: Any = channel.unary_unary(f"/{SERVICE}/Gossip")
        self._push: Any = channel.stream_unary(f"/{SERVICE}/Push")
        self._push_whole: Any = channel.unary_unary(f"/{SERVICE}/Push")  # a stream of one piece, on the wire the same
        self._reference: Any = channel.stream_unary(f"/{SERVICE}/Reference")
        self._metadata = grpc.aio.Metadata(("pushcen-name", name))

    async def hello(self, hello: Hello, timeout: float) -> Hello:
        """Say hello, and return the answer."""
        return Hello.FromString(await self._answer(self._hello, hello.SerializeToString(), timeout))

    async def gossip(self, news: News, timeout: float) -> News:
        """Exchange news."""
        return News.FromString(await self._answer(self._gossip, news.SerializeToString(), timeout))

    async def push(self, pieces: AsyncIterator[bytes] | bytes, timeout: float) -> Hello:
        """Push pieces, or the only one there is, which takes half the calls of gRPC; return the answer."""
        push = self._push_whole if isinstance(pieces, bytes) else self._push
        return Hello.FromString(await self._answer(push, pieces, timeout))

    async def reference(self, pieces: AsyncIterator[bytes], timeout: float) -> Hello:
        """Bring a reference, and return the answer."""
        return Hello.FromString(await self._answer(self._reference, pieces, timeout))

    def is_ready(self) -> bool:
        """Return whether there is a connection; if not, ask for one."""
        return self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    async def ready(self, timeout: float) -> bool:
        """Return whether there is a connection soon."""
        try:
            async with asyncio.timeout(timeout):
                await self._channel.channel_ready()
        except TimeoutError:
            return False
        return True

    async def close(self, grace: float | None = None) -> None:
        """Hang up, after so many seconds if calls are under way."""
        await self._channel.close(grace)

    async def _answer(self, call: Any, request: Any, timeout: float) -> bytes:
        """Return what is answered. If the line is hung up meanwhile, the call has failed: nobody has cancelled us,
        as gRPC would have it.
        """
        try:
            answer: bytes = await call(request, timeout=timeout, metadata=self._metadata)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise grpc.aio.UsageError("hung up on while it was called") from None
        return answer


def short(error: BaseException) -> str:
    """Return what went wrong with a call, in short."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"[:300]
    return str(error)[:300] or type(error).__name__
