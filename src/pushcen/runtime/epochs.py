"""In which epoch a peer begins or goes on, and whether it founds there: who lost its state must not do so again."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from time import monotonic

from pushcen.client import Client
from pushcen.errors import NetworkError, ProtocolError
from pushcen.learning import Learner
from pushcen.protocol import UNIT, Peer, epoch_of, name_of
from pushcen.protocol.messages import check_id, peer_id
from pushcen.runtime.changes import NewSettings
from pushcen.runtime.channels import Channels
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.fingerprint import difference
from pushcen.runtime.network import SHIFT, generation_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.shared import Shared
from pushcen.runtime.trainer import Trainer
from pushcen.runtime.wire import Hello

_AHEAD = 20 * 365 * 24 * 3600 * 1000  # milliseconds that a clock may have been ahead, if only others say so


class NextEpoch:
    """Takes a peer into its next epoch, once it has asked for what it signed itself."""

    def __init__(
        self,
        node: PeerNode,
        me: DurablePeer,
        channels: Channels,
        trainer: Trainer,
        shared: Shared,
        join: Sequence[str],
        stopping: asyncio.Event,
    ) -> None:
        self._node, self._me, self._channels, self._trainer = node, me, channels, trainer
        self._records, self._claims, self._members, self._log = me.records, me.claims, shared.members, shared.log
        self._name, self._timeout = shared.identity.name, shared.settings.hello_timeout
        self._join, self._stopping = list(join), stopping

    async def begin(self) -> None:
        """Settle in which epoch a peer with an empty state folder begins, and commit that."""
        learner, store = self._me.learner, self._me.store
        state = learner.save(whole=False)
        files = await asyncio.get_running_loop().run_in_executor(None, store.save, state.tensors)
        known, client = await self.ask_first(), self._me.client
        await self._check_settings()
        if own := self._claims.own.epoch:
            self._log.warn("this peer's state was lost; it joins with no mass", known=own)
        await self._me.commit(state.plain, files, lambda: Client(self._next(known), learner, client.rng))

    async def renew(self) -> None:
        """Go on in a new epoch, with the model as it is: with no mass, or as a founder of a new generation."""
        await self._check_settings()
        me, learner, old = self._me, self._me.learner, self._me.peer
        state = learner.save(whole=False)
        learner.restore(state)  # without what was folded, which was the old epoch's
        files = await self._trainer.write(state)
        asked, before = self._records.next, me.client
        if asked is not None and self._name in asked.founders:
            await self.ask_again()

        def become() -> Client[Learner]:
            if self._records.next != asked or dict(self._records.newest.settings) != dict(me.settings):
                return before  # a newer generation came meanwhile, of which nobody was asked
            return Client(self._next(), learner, before.rng)

        await me.commit(state.plain, files, become)
        if (now := me.peer) is old:
            return
        hint = "" if generation_of(old.me) != generation_of(now.me) or old.gone else f"pushcen forget {old.me}"
        self._log.warn("a new epoch", before=old.me, now=now.me, held=now.held / UNIT, hint=hint)

    async def ask_first(self) -> int:
        """Ask those that a peer with an empty state folder joins for its own word; return the epoch they know it in.

        It may have been here before, with a clock that was ahead: in an earlier epoch nobody would listen to it. That
        is believed unsigned, within bounds, for all it does is to make the next epoch a later one. A founder waits
        until one has answered, and does not start if all who did run something else. Who is to join nobody is alone,
        and need not ask.
        """
        known, asked = 0, [address for address in self._join if address != self._node.address]
        agree, differ, begun = 0, "", monotonic()
        while asked and not self._stopping.is_set():
            founds = self._name in self._records.newest.founders
            for address, hello in zip(list(asked), await self._greet(asked), strict=True):
                if hello is None:
                    continue
                asked.remove(address)
                known = max(known, self._said(hello))
                if hello.refusal == "run":
                    text = difference(self._node.about, hello.about, usual=self._node.usual)
                    differ = f"{hello.peer} at {address} runs something else: {text}"
                else:
                    agree += 1
            if (agree or differ or not founds) and monotonic() - begun > self._timeout:
                break
            if asked:
                await asyncio.sleep(0.2)
        if differ and not agree and self._name in self._records.newest.founders:
            raise NetworkError(differ)
        return known

    async def ask_again(self) -> None:
        """Ask everybody for a peer's own word before it founds a new generation; wait no longer than for a hello."""
        members = self._members
        known = {self._node.address, *members.addresses().values()}
        addresses = sorted({*self._join, *members.lost.values()} - known)
        await asyncio.gather(self._channels.ask_all(2 * self._timeout), self._greet(addresses))

    async def _check_settings(self) -> None:
        """Enter no generation with settings other than its own. Others hear of them first: they may end this peer."""
        newest, record = self._records.newest, self._records.refound
        if record is not None and dict(newest.settings) != dict(self._me.settings):
            near = filter(self._members.near, list(self._members.all))  # also who did not answer last time: it may now
            await asyncio.gather(*map(self._channels.gossip, near))
            raise NewSettings(record)

    def _next(self, above: int = 0) -> Peer:
        """Make the peer that this one goes on as: in the newest generation, in an epoch later than all that are known
        (and `above`), with no mass.

        Who is listed as a founder of a generation that it has not been in, neither by its ledger nor by its own
        signature, founds it: it holds one unit there.
        """
        generation, before, own, name = self._records.newest, self._me.peer, self._claims.own.epoch, self._name
        last = epoch_of(before.me)
        if name in generation.founders and last < generation.first and own < generation.first:
            return Peer.found(name, before.rules, generation.first)
        epoch = generation.later(time.time_ns() // 1_000_000, last + 1, own + 1, above + 1)
        if not last:
            return Peer.join(name, before.rules, epoch)
        if generation_of(before.me) == generation.number:
            return before.renewed(epoch)
        return Peer(peer_id(name, epoch), 0, before.rules)

    def _said(self, hello: Hello) -> int:
        """Return in which epoch somebody knows this peer; 0 if that cannot be."""
        try:
            known = check_id(hello.known)
        except ProtocolError:
            return 0
        absurd = time.time_ns() // 1_000_000 + _AHEAD
        plausible = generation_of(known) == self._records.newest.number and epoch_of(known) % (1 << SHIFT) < absurd
        return epoch_of(known) if name_of(known) == self._name and plausible else 0

    async def _greet(self, addresses: Iterable[str]) -> list[Hello | None]:
        """Say hello to whoever listens at these addresses, and take in what they say of this peer's past."""
        answers = await asyncio.gather(*map(self._channels.greet, list(addresses)))
        for hello in answers:
            if hello is not None:
                self._me.hear_past(hello.peer, hello)
        return answers
