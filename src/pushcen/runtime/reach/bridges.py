"""The caller's side of tunnels: a local socket for each peer that is reached through hosts, which gRPC dials."""

import asyncio
import itertools
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import grpc

from pushcen.runtime.line import short
from pushcen.runtime.members import hosts_of
from pushcen.runtime.reach.pipe import BROKEN, PIECE, TO, TUNNEL, pipe
from pushcen.runtime.reach.tunnels import Tunnels
from pushcen.runtime.shared import Shared

Open = Callable[[str, str], grpc.aio.Channel]
"""Opens a channel to an address, and to the peer of a name there."""


class Bridges:
    """Sockets in a folder that nobody else may enter. What is written into one comes out at its peer.

    `own` are the tunnels of those whom this peer hosts itself, and calls through nobody.
    """

    def __init__(self, shared: Shared, open_channel: Open, own: Callable[[], Tunnels | None]) -> None:
        self._shared, self._open, self._own = shared, open_channel, own
        self._folder: Path | None = None
        self._numbers = itertools.count()
        self._paths: dict[str, str] = {}
        self._servers: dict[str, asyncio.Task[Any]] = {}
        self._channels: dict[tuple[str, str], grpc.aio.Channel] = {}
        self._ending: set[asyncio.Task[Any]] = set()

    def address(self, name: str) -> str:
        """Return where to dial for the peer of this name."""
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="pushcen-"))
        if name not in self._paths:
            path = self._paths[name] = str(self._folder / str(next(self._numbers)))  # short: a socket's path is
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(8)
            self._servers[name] = asyncio.get_running_loop().create_task(self._serve(name, listener))
        return f"unix:{self._paths[name]}"

    def keep(self, names: Container[str]) -> None:
        """Keep the sockets of these peers, and channels to their hosts; close all others."""
        if not self._paths:
            return
        for name in [name for name in self._paths if name not in names]:
            Path(self._paths.pop(name)).unlink(missing_ok=True)
            self._servers[name].cancel()
            self._end(self._servers.pop(name))
        members, grace = self._shared.members.all, self._shared.settings.push_timeout
        hosts = {host for name in self._paths if name in members for host in hosts_of(members[name].address)}
        for host, address in list(self._channels):
            if host not in hosts or address != self._address(host):
                closing = self._channels.pop((host, address)).close(grace)
                self._end(asyncio.get_running_loop().create_task(closing))

    async def close(self) -> None:
        """Close all of them."""
        tasks = [*self._servers.values(), *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for channel in self._channels.values():
            await channel.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, task: asyncio.Task[Any]) -> None:
        """Keep hold of what ends until it has."""
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _serve(self, name: str, listener: socket.socket) -> None:
        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._lead(name, reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_unix_server(lead, sock=listener, limit=PIECE)
        async with server:
            await server.serve_forever()

    async def _lead(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Try a peer's hosts, in any order, and go through the first that has it; through none if it is hosted here."""
        member, own = self._shared.members.all.get(name), self._own()
        hosts = hosts_of(member.address) if member is not None else []
        if own is not None and own.hosts(name):
            try:
                await own.lead(name, reader, writer)
                return
            except (*BROKEN, TimeoutError) as error:
                self._no_tunnel(name, self._shared.identity.name, error)
        for host in random.sample(hosts, len(hosts)):
            address = self._address(host)
            if not address:
                continue
            try:
                channel = self._channel(host, address)
                metadata = grpc.aio.Metadata(("pushcen-name", self._shared.identity.name), (TO, name))
                call: Any = channel.stream_stream(TUNNEL)(metadata=metadata)
                try:
                    async with asyncio.timeout(self._shared.pace.timeout):
                        await call.wait_for_connection()
                    await pipe(call, reader, writer)
                    return
                finally:
                    call.cancel()
            except (*BROKEN, TimeoutError) as error:
                self._no_tunnel(name, host, error)

    def _no_tunnel(self, name: str, host: str, error: Exception) -> None:
        self._shared.log.seldom(f"tunnel {name}", "no tunnel", neighbour=name, host=host, text=short(error))

    def _address(self, host: str) -> str:
        """Return where a host listens, if it is another peer that can be dialled."""
        member = self._shared.members.all.get(host)
        return member.address if member is not None and not hosts_of(member.address) else ""

    def _channel(self, host: str, address: str) -> grpc.aio.Channel:
        if (host, address) not in self._channels:
            self._channels[host, address] = self._open(address, host)
        return self._channels[host, address]
