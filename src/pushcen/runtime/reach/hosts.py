"""The side of a peer that nobody can dial: it keeps streams open to a few members, and accepts their tunnels."""

import asyncio
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Any

import grpc

from pushcen.runtime.line import short
from pushcen.runtime.members import hosts_of
from pushcen.runtime.reach.pipe import ACCEPT, BROKEN, HOST, PIECE, TUNNEL, pipe
from pushcen.runtime.shared import Shared

_TICK = 0.2


class Hosts:
    """Keeps a peer within reach: `moved` is told through whom, whenever that changes."""

    def __init__(
        self,
        shared: Shared,
        open_channel: Callable[[str, str], grpc.aio.Channel],
        path: str,
        moved: Callable[[list[str]], None],
        rng: Random,
    ) -> None:
        self._shared, self._open, self._path, self._moved, self._rng = shared, open_channel, path, moved, rng
        self._streams: dict[str, asyncio.Task[None]] = {}
        self._accepting: set[asyncio.Task[None]] = set()
        self._there: set[str] = set()
        self._certificate = shared.identity.serial
        self._again: dict[str, float] = {}  # when a host that is gone is tried again

    async def run(self) -> None:
        """Keep as many hosts as the settings say, among those that can be dialled; another, when one goes."""
        settings = self._shared.settings
        try:
            while True:
                self._streams = {name: task for name, task in self._streams.items() if not task.done()}
                if self._certificate != self._shared.identity.serial:  # hosts let nobody in whose certificate has ended
                    self._certificate = self._shared.identity.serial
                    for task in self._streams.values():
                        task.cancel()
                members = [one for one in self._shared.members.online() if not hosts_of(one.address)]
                free = [one for one in members if one.name not in self._streams and self._may_try(one.name)]
                for one in self._rng.sample(free, min(len(free), max(0, settings.hosts - len(self._streams)))):
                    self._streams[one.name] = asyncio.create_task(self._stay(one.name, one.address))
                await asyncio.sleep(_TICK)
        finally:
            tasks = [*self._streams.values(), *self._accepting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _may_try(self, name: str) -> bool:
        return monotonic() >= self._again.get(name, 0.0)

    async def _stay(self, name: str, address: str) -> None:
        """Be hosted by a member until it goes."""
        channel = self._open(address, name)
        metadata = grpc.aio.Metadata(("pushcen-name", self._shared.identity.name))
        call: Any = channel.stream_stream(HOST)(metadata=metadata)
        try:
            async with asyncio.timeout(self._shared.pace.timeout):
                if await call.read() is grpc.aio.EOF:
                    return
            self._change(name, there=True)
            while (token := await call.read()) is not grpc.aio.EOF:
                task = asyncio.create_task(self._accept(channel, token.decode()))
                self._accepting.add(task)
                task.add_done_callback(self._accepting.discard)
        except (*BROKEN, TimeoutError, UnicodeDecodeError) as error:
            self._shared.log.seldom(f"host {name}", "a host is gone", host=name, text=short(error))
        finally:
            self._again[name] = monotonic() + self._shared.settings.retry_first
            self._change(name, there=False)
            call.cancel()
            await channel.close()

    async def _accept(self, channel: grpc.aio.Channel, token: str) -> None:
        """Lead a tunnel to this peer's own service."""
        metadata = grpc.aio.Metadata(("pushcen-name", self._shared.identity.name), (ACCEPT, token))
        call: Any = channel.stream_stream(TUNNEL)(metadata=metadata)
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=PIECE)
            await pipe(call, reader, writer)
        except BROKEN as error:
            self._shared.log.seldom("tunnel", "a tunnel is gone", text=short(error))
        finally:
            call.cancel()

    def _change(self, name: str, *, there: bool) -> None:
        before = set(self._there)
        (self._there.add if there else self._there.discard)(name)
        if self._there != before:
            self._shared.log.say("reached through", hosts=sorted(self._there))
            self._moved(sorted(self._there))
