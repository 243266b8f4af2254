"""Getting to know each other: hellos to those whose time has come, and gossip."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic

from pushcen.protocol import PeerId, name_of
from pushcen.runtime.channels import Channels
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.members import hosts_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.shared import Shared
from pushcen.runtime.wire import Signed

_TICK = 0.2


class Meeting:
    """Keeps one peer in touch with the others."""

    def __init__(
        self,
        node: PeerNode,
        me: DurablePeer,
        channels: Channels,
        shared: Shared,
        join: Sequence[str],
        certs: Path | None,
        rng: Random,
    ) -> None:
        self._node, self._me, self._channels, self._rng = node, me, channels, rng
        self._members, self._settings, self._log = shared.members, shared.settings, shared.log
        self._name, self._join = shared.identity.name, list(join)
        self._files = [certs / name for name in ("revoked.signed", "refound.signed")] if certs else []
        self._times: dict[Path, float] = {}

    async def meet(self) -> None:
        """Say hello to those whose time has come; alone, start from all known addresses again, and else now and then
        from one of them, so that a network that was cut in two grows together again.
        """
        members, settings = self._members, self._settings
        wait, next_join, joining = settings.retry_first, 0.0, set[asyncio.Task[None]]()
        while True:
            for name in members.due(monotonic(), self._me.awaits):
                self._channels.ask(name)
            if monotonic() >= next_join and all(task.done() for task in joining):
                alone = not members.online()
                known = {self._node.address, *members.addresses().values()}
                known |= {address for address in members.lost.values() if hosts_of(address)}  # they dial us
                addresses = sorted({*self._join, *members.lost.values()} - known)
                wait = min(2 * wait, settings.retry_last) if alone else settings.retry_last
                next_join = monotonic() + wait
                tried = addresses if alone else self._rng.sample(addresses, min(1, len(addresses)))
                joining = {self._channels.spawn(self._greet(address)) for address in tried}
            await self._channels.tidy()
            await asyncio.sleep(_TICK)

    async def _greet(self, address: str) -> None:
        """Meet whoever listens at an address. What it calls itself is believed once its certificate has shown it."""
        hello = await self._channels.greet(address)
        if hello is None or hello.peer in self._members.gone:
            return
        name = name_of(PeerId(hello.peer))
        if name == self._name or await self._channels.greet(address, name) is None:
            return
        if self._members.meet(name, address, monotonic(), self._me.owed):
            await self._channels.ask(name)

    async def gossip(self) -> None:
        """Exchange news with a random neighbour now and then; spread lasting records at once."""
        me, every = self._me, self._settings.gossip_every
        last = monotonic() - every
        while True:
            self.read_records()
            online = [member.name for member in self._members.neighbours()]
            if me.unheard:
                me.unheard.clear()
                await me.commit()
                await asyncio.gather(*(self._channels.gossip(name) for name in online))
            elif online and monotonic() - last > every:
                last = monotonic()
                await self._channels.gossip(self._rng.choice(online))
            await asyncio.sleep(_TICK)

    def read_records(self) -> None:
        """Take over records of the authority that an operator put into the folder of certificates."""
        for path in self._files:
            try:
                if path.exists() and (changed := path.stat().st_mtime) != self._times.get(path):
                    self._times[path] = changed
                    self._me.keep(Signed.FromString(path.read_bytes()))
            except Exception as error:  # an operator may be half-way through copying it
                self._log.seldom(path.name, f"cannot read {path.name}", text=repr(error))
