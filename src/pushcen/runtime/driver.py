"""The life of a peer: meet others, train and push, answer; then stop, or leave."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pushcen.client import Client
from pushcen.learning import Learner
from pushcen.protocol import UNIT
from pushcen.runtime.channels import Channels
from pushcen.runtime.epochs import ask_again, next_peer
from pushcen.runtime.meeting import Meeting
from pushcen.runtime.network import generation_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.security.records import farewell_fields
from pushcen.runtime.trainer import Trainer

_TICK = 0.2
_SERVE_EVERY = 1.0


class Driver:
    """Drives one node from start to end."""

    def __init__(self, node: PeerNode, join: Sequence[str], certs: Path | None = None) -> None:
        self.node = node
        self.neighbours = Channels(node)
        self._join = list(join)
        self._meeting = Meeting(node, self.neighbours, join, certs)
        self.trainer = Trainer(node, self.neighbours)
        self.read_records = self._meeting.read_records

    async def run(self, events: int | None = None, *, leave: bool = False) -> None:
        """Live until told to stop; train for so many compute events in all, and answer others after that."""
        node = self.node
        background = [asyncio.create_task(work) for work in (self._meeting.meet(), self._meeting.gossip())]
        stop: asyncio.Task[Any] = asyncio.create_task(node.stopping.wait())
        life = asyncio.create_task(self._live(events, leave))
        try:
            await asyncio.wait([stop, life, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in (life, *background):
                if task.done() and not task.cancelled() and task.exception():
                    raise task.exception()  # type: ignore[misc]
        finally:
            for task in (stop, life, *background):
                task.cancel()
            await asyncio.gather(stop, life, *background, return_exceptions=True)

    async def close(self, grace: float) -> bool:
        """Hang up; say whether the training thread has ended, too. Its event is undone: nothing of it is durable."""
        await self.neighbours.close()
        return await self.trainer.close(grace)

    async def _live(self, events: int | None, leave: bool) -> None:
        node, settings = self.node, self.node.settings
        leave = leave or (node.peer.status == "leaving" and not node.stale)
        if node.peer.boot > 1 and node.members.all:  # a copy of an older state is found out before it pushes anything
            await asyncio.wait([self.neighbours.ask(name) for name in node.members.all], timeout=settings.hello_timeout)
        waited = node.now
        while len(node.members.online()) < settings.start_with and node.now - waited < settings.start_timeout:
            if node.stale:
                await self._renew()
            await asyncio.sleep(_TICK)
        node.log.say("training begins", neighbours=len(node.members.online()), events=node.peer.events)
        served = node.now
        while not (leave or node.leaving.is_set()):
            if node.stale:
                await self._renew()
            elif events is None or node.client.learner.events < events:
                await self.trainer.event()
            else:
                await asyncio.sleep(_TICK)
                if node.now - served > _SERVE_EVERY:
                    served = node.now
                    await self._serve()
        await self._leave()

    async def _serve(self) -> None:
        """Serve links in doubt while there is no training that would do so."""
        node = self.node
        there = {member.contact.peer for member in node.members.online() if member.contact}
        if there.isdisjoint(node.peer.unsettled):
            return
        payloads = await self.trainer.encode()
        envelopes = node.peer.serve(payloads, len(node.peer.unsettled))
        await node.commit()
        self.neighbours.send([envelope for envelope in envelopes if envelope.receiver in there])

    async def _renew(self) -> None:
        """Go on in a new epoch, with the model as it is: with no mass, or as a founder of a new generation."""
        node, learner, old = self.node, self.node.client.learner, self.node.peer
        state = learner.save(whole=False)
        learner.restore(state)  # without what was folded, which was the old epoch's
        files = await self.trainer.write(state)
        asked = node.records.next
        if asked is not None and node.identity.name in asked.founders:
            await ask_again(node, self.neighbours, self._join)

        def become() -> Client[Learner]:
            if node.records.next != asked:
                return node.client  # a newer generation came meanwhile, of which nobody was asked
            return Client(next_peer(node), learner, node.client.rng)

        await node.commit(state.plain, files, become)
        hint = "" if generation_of(old.me) != node.generation.number or old.gone else f"pushcen forget {old.me}"
        node.log.warn("a new epoch", before=old.me, now=node.peer.me, held=node.peer.held / UNIT, hint=hint)

    async def _leave(self) -> None:
        """Give all mass away and see it arrive; then this peer is gone."""
        while not await self._hand_over():
            await self._renew()

    async def _hand_over(self) -> bool:
        """Leave this epoch; give up, and return False, if it ends before that."""
        node = self.node
        if node.stale:
            return False
        if node.peer.status == "open":
            farewell = node.peer.leave()
            await node.commit()
            node.log.say("leaving", held=node.peer.held / UNIT)
        else:
            farewell = node.peer.farewell()
        record = node.identity.sign(farewell_fields(farewell))
        node.keep(record)
        payloads = await self.trainer.encode()
        served = -1e9
        while not node.peer.gone:
            online = node.members.online()
            await asyncio.gather(*(self.neighbours.ask(member.name) for member in online))
            heirs = [member.contact for member in node.members.online() if member.contact]
            if (node.peer.held and heirs) or (node.peer.unsettled and node.now - served > _SERVE_EVERY):
                served = node.now
                envelopes = node.peer.hand_over(heirs, payloads)
                await node.commit()
                self.neighbours.send(envelopes)
            await asyncio.sleep(_TICK)
            node.measure()
            if node.stale:
                return False
        await node.commit()
        for name in [member.name for member in node.members.online()]:
            await self.neighbours.gossip(name)
        node.log.say("left", peer_id=node.peer.me)
        return True
