"""Bytes carried both ways between a gRPC stream and a local socket."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

import grpc

from pushcen.runtime.wire import SERVICE

PIECE = 256 << 10
"""Bytes that one message of a tunnel has at most."""
HOST, TUNNEL = f"/{SERVICE}/Host", f"/{SERVICE}/Tunnel"
TO, ACCEPT = "pushcen-to", "pushcen-accept"
"""What a tunnel is opened with: whom it is to lead to, or which knock it answers."""


class Stream(Protocol):
    """Either end of a call whose both sides stream."""

    async def read(self) -> Any:
        """Return the next message, or EOF."""

    async def write(self, request: Any, /) -> None:
        """Send a message, when there is room for it."""


async def pipe(stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes between a stream and a socket until either ends; then close the socket."""

    async def leave() -> None:
        while data := await reader.read(PIECE):
            await stream.write(data)

    async def arrive() -> None:
        while (data := await stream.read()) is not grpc.aio.EOF:
            writer.write(data)
            await writer.drain()

    try:
        await until_one_ends(leave(), arrive())
    finally:
        writer.close()


async def until_one_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Do several things until one of them is over, or goes wrong as connections do; the others are given up."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    for error in done:
        if isinstance(error, Exception) and not isinstance(error, BROKEN):
            raise error


BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, OSError, asyncio.InvalidStateError)
"""What reading from, or writing to, a connection that is gone raises, or that of a server that has stopped."""
