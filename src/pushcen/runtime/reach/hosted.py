"""Asks a peer that only dials out how it is, through one that hosts it, as any member would call it."""

import asyncio
import contextlib
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import grpc

from pushcen.errors import NetworkError
from pushcen.runtime.looking import RemotePeer
from pushcen.runtime.reach.pipe import BROKEN, PIECE, TO, TUNNEL, pipe
from pushcen.runtime.security.identity import Identity


class HostedPeer(RemotePeer):
    """A peer of a name, behind `hosts`: their addresses, by name. Who it is, its certificate says, not its host."""

    def __init__(self, identity: Identity, name: str, timeout: float = 5.0) -> None:
        super().__init__(identity, f"{name} (dials out)", timeout, name)
        self.hosts: dict[str, str] = {}
        self._ends = contextlib.AsyncExitStack()

    async def _open(self, options: list[tuple[str, Any]]) -> grpc.aio.Channel:
        if not self.hosts:
            raise NetworkError("nobody who is asked hosts it")
        host = random.choice(sorted(self.hosts))
        folder = Path(tempfile.mkdtemp(prefix="pushcen-"))  # nobody else may enter it
        self._ends.callback(shutil.rmtree, folder, ignore_errors=True)
        way = self.identity.channel(self.hosts[host], host, options)
        self._ends.push_async_callback(way.close)

        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            metadata = grpc.aio.Metadata(("pushcen-name", self.identity.name), (TO, self._name))
            call: Any = way.stream_stream(TUNNEL)(metadata=metadata)
            try:
                await call.wait_for_connection()
                await pipe(call, reader, writer)
            except (*BROKEN, asyncio.CancelledError):
                return  # its caller sees it, too
            finally:
                call.cancel()
                writer.close()

        server = await asyncio.start_unix_server(lead, folder / "way", limit=PIECE)
        self._ends.callback(server.close)
        return self.identity.channel(f"unix:{folder / 'way'}", self._name, options)

    async def close(self) -> None:
        """Hang up."""
        await super().close()
        await self._ends.aclose()
