"""The life of a peer: meet others, train and push, answer; then stop, or leave."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from pushcen.errors import TransientError
from pushcen.protocol import UNIT, Ask, Contact
from pushcen.runtime.channels import Channels
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.epochs import NextEpoch
from pushcen.runtime.exchange import Exchanging
from pushcen.runtime.meeting import Meeting
from pushcen.runtime.node import PeerNode
from pushcen.runtime.reach.hosts import Hosts
from pushcen.runtime.security.records import farewell_fields
from pushcen.runtime.shared import Shared
from pushcen.runtime.trainer import Trainer
from pushcen.runtime.upkeep import Upkeep

_TICK = 0.2
_SERVE_EVERY = 1.0
_ASK_EVERY = 0.5  # seconds after which a leaving peer asks again


class Driver:
    """Drives one peer from start to end; `stopping` and `leaving` tell it to end.

    One that does not listen has its service at a `local` socket, to which its hosts' tunnels lead.
    """

    def __init__(
        self,
        node: PeerNode,
        me: DurablePeer,
        shared: Shared,
        join: Sequence[str],
        certs: Path | None,
        rng: Random,
        local: str = "",
    ) -> None:
        self.node, self.me, self.shared = node, me, shared
        self.stopping, self.leaving = asyncio.Event(), asyncio.Event()
        self.channels = Channels(node, me, shared)
        self.trainer = Trainer(me, self.channels, shared)
        self.epochs = NextEpoch(node, me, self.channels, self.trainer, shared, join, self.stopping)
        self.meeting = Meeting(node, me, self.channels, shared, join, certs, rng)
        self.upkeep = Upkeep(node, me, shared, join)
        self._members, self._log = shared.members, shared.log
        self._hosts = Hosts(shared, self.channels.open, local, self._moved, rng) if local else None
        if isinstance(me.peer.rules.outbox, Ask):
            node.exchanging = self.trainer.exchanging = Exchanging(me, self.channels, shared)

    async def run(self, events: int | None = None, *, leave: bool = False) -> None:
        """Live until told to stop; train for so many compute events in all, and answer others after that."""
        works = [self.meeting.meet(), self.meeting.gossip(), *([self._hosts.run()] if self._hosts else [])]
        background = [asyncio.create_task(work) for work in works]
        stop: asyncio.Task[Any] = asyncio.create_task(self.stopping.wait())
        life = asyncio.create_task(self._live(events, leave))
        try:
            await asyncio.wait([stop, life, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in (life, *background):
                if task.cancelled():
                    raise TransientError(f"{self.shared.identity.name}: something cancelled a part of this peer")
                if task.done():
                    task.result()
        finally:
            for task in (stop, life, *background):
                task.cancel()
            await asyncio.gather(stop, life, *background, return_exceptions=True)

    async def close(self, grace: float) -> bool:
        """Hang up; return whether the training thread has ended, too. Its event is undone: nothing of it is durable."""
        self.upkeep.close()
        await self.channels.close()
        if self.node.exchanging is not None:
            self.node.exchanging.close()
        return await self.trainer.close(grace)

    def _moved(self, hosts: list[str]) -> None:
        """Tell everybody through whom this peer is reached now."""
        self.node.address = "@" + ",".join(hosts) if hosts else ""
        for member in self._members.neighbours():
            self.channels.ask(member.name)

    async def _live(self, events: int | None, leave: bool) -> None:
        me, members, settings, peer = self.me, self._members, self.shared.settings, self.me.peer
        leave = leave or (peer.status == "leaving" and not me.stale)
        if peer.boot > 1 and members.all:  # a copy of an older state is found out before it pushes anything
            await self.channels.ask_all(settings.hello_timeout)
        waited = monotonic()
        while len(members.online()) < settings.start_with and monotonic() - waited < settings.start_timeout:
            if me.stale:
                await self.epochs.renew()
            await asyncio.sleep(_TICK)
        self._log.say("training begins", neighbours=len(members.online()), events=me.peer.events)
        served = monotonic()
        while not (leave or self.leaving.is_set()):
            if me.stale:
                await self.epochs.renew()
            elif not (why := self.trainer.enough(events)):
                self.shared.seen.phase = "training"
                await self.trainer.event()
            else:
                if self.shared.seen.phase != "done":
                    self.shared.seen.phase = "done"
                    self._log.say("training is done; others are still answered", why=why)
                await asyncio.sleep(_TICK)
                if monotonic() - served > _SERVE_EVERY:
                    served = monotonic()
                    await self._serve()
        while not await self._hand_over():
            await self.epochs.renew()

    async def _serve(self) -> None:
        """Serve links in doubt while there is no training that would do so."""
        there = {member.contact.peer for member in self._members.online() if member.contact}
        if there.isdisjoint(self.me.peer.unsettled):
            return
        payloads, peer = await self.trainer.encode(self._unsettled()), self.me.peer
        envelopes = peer.serve(payloads, len(peer.unsettled))
        await self.me.commit()
        self.channels.send([envelope for envelope in envelopes if envelope.receiver in there])

    async def _hand_over(self) -> bool:
        """Give all mass away and see it arrive, after which this peer is gone; or return False, if its epoch ends
        before that.
        """
        me, peer, members = self.me, self.me.peer, self._members
        if me.stale:
            return False
        if peer.status == "open":
            farewell = peer.leave()
            await me.commit()
            self._log.say("leaving", held=peer.held / UNIT)
            self.shared.seen.facts.visited("says farewell")
        else:
            farewell = peer.farewell()
        self.shared.seen.leaving = self.shared.seen.clock()
        me.keep(self.shared.identity.sign(farewell_fields(farewell)))
        payloads = await self.trainer.encode(self._heirs(-1e9))
        served, begun = -1e9, monotonic()
        while not peer.gone:
            since, begun = begun, monotonic()
            if asked := [self.channels.ask(name) for name in members.all if self._needs(name, begun)]:
                await asyncio.wait(asked, timeout=self.shared.settings.patience)
            heirs = self._heirs(since)  # with who was asked before, and answers late
            if (peer.held and heirs) or (peer.unsettled and monotonic() - served > _SERVE_EVERY):
                served = monotonic()
                if me.offers is not None:
                    payloads = await self.trainer.encode(heirs, peer.held)
                envelopes = peer.hand_over(heirs, payloads)
                await me.commit()
                self.channels.send(envelopes)
            await asyncio.sleep(_TICK)
            me.measure()
            if me.stale:
                return False
        await me.commit()
        await asyncio.gather(*(self.channels.gossip(member.name) for member in members.neighbours()))
        self._log.say("left", peer_id=peer.me)
        return True

    def _needs(self, name: str, now: float) -> bool:
        """Return whether a leaving peer has to ask another now: for what it awaits of it, or whether it takes mass.

        Who has not answered is asked again in its turn.
        """
        member = self._members.all[name]
        wanted = self.me.awaits(name) or (self.me.peer.held and self._members.near(name))
        return bool(wanted) and not member.failures and now - member.tried > _ASK_EVERY

    def _heirs(self, since: float) -> list[Contact]:
        """List those whom a line is kept to, and who have answered since."""
        there = (one for one in self._members.neighbours() if one.answered >= since)
        return [member.contact for member in there if member.contact]

    def _unsettled(self) -> list[Contact]:
        """List those who answer and to whom mass is in doubt."""
        contacts = [member.contact for member in self._members.online() if member.contact]
        return [contact for contact in contacts if contact.peer in self.me.peer.unsettled]
