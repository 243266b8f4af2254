"""Getting to know each other: hellos to those whose time has come, and gossip."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pushcen.protocol import PeerId, name_of
from pushcen.runtime.channels import Channels
from pushcen.runtime.node import PeerNode
from pushcen.runtime.wire import Signed

_TICK = 0.2


class Meeting:
    """Keeps one node in touch with the others."""

    def __init__(self, node: PeerNode, neighbours: Channels, join: Sequence[str], certs: Path | None) -> None:
        self.node, self.neighbours = node, neighbours
        self._join = list(join)
        self._files = [certs / name for name in ("revoked.signed", "refound.signed")] if certs else []
        self._times: dict[Path, float] = {}

    async def meet(self) -> None:
        """Say hello to those whose time has come; alone, start from all known addresses again, and else now and then
        from one of them, so that a network that was cut in two grows together again.
        """
        node = self.node
        wait, next_join = node.settings.retry_first, 0.0
        while True:
            for name in node.members.due(node.now):
                self.neighbours.ask(name)
            if node.now >= next_join:
                alone = not node.members.online()
                addresses = {*self._join, *node.members.lost.values()} - {
                    node.address,
                    *node.members.addresses().values(),
                }
                wait = min(2 * wait, node.settings.retry_last) if alone else node.settings.retry_last
                next_join = node.now + wait
                tried = sorted(addresses) if alone else node.rng.sample(sorted(addresses), min(1, len(addresses)))
                await asyncio.gather(*map(self._greet, tried))
            await self.neighbours.tidy()
            await asyncio.sleep(_TICK)

    async def _greet(self, address: str) -> None:
        """Meet whoever listens at an address. What it calls itself is believed once its certificate has shown it."""
        node = self.node
        hello = await self.neighbours.greet(address)
        name = name_of(PeerId(hello.peer)) if hello is not None else node.identity.name
        if name == node.identity.name or await self.neighbours.greet(address, name) is None:
            return
        if node.members.meet(name, address, node.now, node.owed):
            await self.neighbours.ask(name)

    async def gossip(self) -> None:
        """Exchange news with a random neighbour now and then; spread lasting records at once."""
        node = self.node
        last = node.now - node.settings.gossip_every
        while True:
            self.read_records()
            online = [member.name for member in node.members.online()]
            if node.unheard:
                node.unheard.clear()
                await node.commit()
                await asyncio.gather(*(self.neighbours.gossip(name) for name in online))
            elif online and node.now - last > node.settings.gossip_every:
                last = node.now
                await self.neighbours.gossip(node.rng.choice(online))
            await asyncio.sleep(_TICK)

    def read_records(self) -> None:
        """Take over records of the authority that an operator put into the folder of certificates."""
        for path in self._files:
            try:
                if path.exists() and (changed := path.stat().st_mtime) != self._times.get(path):
                    self._times[path] = changed
                    self.node.keep(Signed.FromString(path.read_bytes()))
            except Exception as error:  # an operator may be half-way through copying it
                self.node.log.seldom(path.name, f"cannot read {path.name}", text=repr(error))
