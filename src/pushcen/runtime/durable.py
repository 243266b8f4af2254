"""Who a peer is at present: what is durable of it, what lasting records say, and when it has to go on as another.

A peer becomes another, in a new epoch, for its own signature that is ahead of its ledger, or by the authority's word.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from pushcen.client import Client
from pushcen.codec import Payload, read_reference
from pushcen.errors import CertificateError, LedgerError, ProtocolError
from pushcen.learning import OFFER, Learner, Payloads
from pushcen.protocol import UNIT, Farewell, Peer, PeerId, epoch_of, name_of
from pushcen.references import HOLDS, ReferenceName
from pushcen.runtime.claims import NOWHERE, Claims, Progress
from pushcen.runtime.network import Generation, generation_of
from pushcen.runtime.offers import HeldReference, Offer, Offers, Plan
from pushcen.runtime.security.records import Records, Said
from pushcen.runtime.shared import Refusal, Shared
from pushcen.runtime.state_folder import File, StateFolder
from pushcen.runtime.wire import Hello, Signed


class DurablePeer:
    """One peer's client with its ledger, and all that may unsettle it."""

    def __init__(
        self, shared: Shared, store: StateFolder, client: Client[Learner], offers: Offers | None = None
    ) -> None:
        self.store, self.client = store, client
        self.offers = offers  # its references, if the method's move
        self.records, self.claims = Records(shared.identity), Claims(shared.identity)
        self.stale = ""  # why this peer needs a new epoch, if it does
        self.settings: Mapping[str, str] = {}  # of the generation that it is set up for
        self.about: Mapping[str, str] = {}  # what must agree there
        self.track: Any = None  # how its scores have gone, as `Track.plain` says it
        self.past: list[dict[str, Any]] = []  # the books of what this peer left, and of earlier generations
        self.unheard: list[Signed] = []  # records to spread at once
        self._shared, self._members = shared, shared.members
        self._identity, self._log, self._metrics = shared.identity, shared.log, shared.metrics
        self._durable: dict[str, list[int]] = {}  # what is committed as credited
        self._committed = NOWHERE  # how far that is
        self._holding: dict[ReferenceName, asyncio.Task[bool]] = {}  # references that are being written
        self._ledger, self._committing = ThreadPoolExecutor(1, "ledger"), asyncio.Lock()

    @property
    def peer(self) -> Peer:
        """This peer's side of the protocol."""
        return self.client.peer

    @property
    def learner(self) -> Learner:
        """Its tensors, which stay the same whoever it becomes."""
        return self.client.learner

    @property
    def generation(self) -> Generation:
        """The generation that this peer is in, with those who founded it."""
        return self.records.generation

    def close(self) -> None:
        """Wait for commits that are under way."""
        for task in self._holding.values():
            task.cancel()
        self._ledger.shutdown()

    async def commit(
        self,
        learner: Any = None,
        files: Mapping[str, File] | None = None,
        become: Callable[[], Client[Learner]] | None = None,
    ) -> None:
        """Commit the peer as it is now, or as it is to `become`; with what the learner saved, if it has.

        Commits wait for each other: none that comes later may succeed before one that the disk has no room for yet. In
        the name of a new epoch or boot nothing is said before it is durable, with the record on the generation that it
        enters.
        """
        async with self._committing:
            self.check_words()
            client, words = become() if become else self.client, self.claims.unsaved()
            entering = self.records.next if generation_of(client.peer.me) != self.generation.number else None
            state, reached, past = client.peer.save(), Progress.of(client.peer), self.past
            anew = client.peer.me != self.peer.me
            if anew and (self.peer.gone or (entering and epoch_of(self.peer.me))):
                past = [*past, self.peer.save()]
            values: dict[str, Any] = {"peer": state, "rng": client.rng.getstate(), **words}
            values |= {"records": self.records.save(entering), "members": self._members.addresses()}
            values |= {"references": self.offers.save()} if self.offers is not None else {}
            values |= {"learner": learner} if learner is not None else {}
            values |= {"track": self.track} if self.track is not None else {}
            values |= {"past": past} if past is not self.past else {}
            values |= {"inode": self.store.inode()} if anew else {}  # it is nobody's copy any more
            values |= {"about": dict(self.about)} if anew and self.about else {}
            with self._metrics.commit.time():
                await self._shared.on_disk(self._ledger, lambda: self._write(values, files))
            if self.offers is not None:
                self.offers.saved(values["references"])
            self._durable, self._committed, self.past = state["credited"], reached, past
            self.claims.saved(words)
            if client is not self.client:
                client.weigh, self.client = self.client.weigh, client
                if entering is not None:
                    self.records.enter(entering)
                    self._members.restart(monotonic())
                self._reapply()
                if anew:
                    self._settle()

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up what a ledger has beside the peer: lasting records, others' words, addresses, earlier books."""
        wrong = self.records.restore(saved.get("records", []), generation_of(self.peer.me))
        if self.offers is not None and "references" in saved:
            wrong += self.offers.restore(saved["references"])
        for text in wrong + self.claims.restore(saved):
            self._shared.refused("record", "", text)
        if self.generation.number != generation_of(self.peer.me):
            raise LedgerError(f"{self.store.folder}: {self.peer.me} is here without the record on its generation")
        self._reapply()
        self.past, self.track = saved.get("past", []), saved.get("track")
        for name, address in saved.get("members", {}).items():
            self._members.meet(name, address, monotonic())

    async def hold(self, offers: Offers, offer: Offer, payload: Payload) -> bool:
        """Hold a reference that came, and make that durable; return whether it is held.

        That ends, though its caller hangs up; so few may wait for the disk at a time.
        """
        task = self._holding.get(offer.name)
        if task is None:
            if len(self._holding) >= HOLDS:
                raise Refusal("busy", f"{len(self._holding)} references wait for the disk")
            task = self._holding[offer.name] = asyncio.create_task(self._hold(offers, offer, payload))
            task.add_done_callback(lambda _: self._holding.pop(offer.name))
        return await asyncio.shield(task)

    async def served(self, plan: Plan, payloads: Payloads) -> None:
        """Note what was encoded by a plan. What is offered with it is held once that is committed."""
        if (offers := self.offers) is None:
            return
        own = None
        if plan.offer is not None and OFFER in payloads:
            own = await self._written(offers, offers.sign(plan.offer, payloads[OFFER]), payloads[OFFER])
        offers.served(plan, payloads, own)

    def _write(self, values: Mapping[str, Any], files: Mapping[str, File] | None) -> None:
        self.store.commit(values, files)
        if self.offers is not None:
            self.offers.tidy(values["references"])

    async def _hold(self, offers: Offers, offer: Offer, payload: Payload) -> bool:
        if not offers.hold(await self._written(offers, offer, payload)):
            return False
        await self.commit()
        return True

    async def _written(self, offers: Offers, offer: Offer, payload: Payload) -> HeldReference:
        file = await self._shared.on_disk(self._ledger, lambda: offers.files.write(payload.data))
        return HeldReference(offer, payload, read_reference(payload), file)

    def committed(self, sender: PeerId) -> int:
        """Return what is durably credited from a peer."""
        return self._durable.get(sender, [0])[0]

    def progress(self) -> Signed:
        """Return this peer's own word on how far it has come, as far as that is durable."""
        return self.claims.sign(self._committed)

    def hear_past(self, teller: str, hello: Hello) -> None:
        """Take in what a hello shows of the network's past, and of this peer's own, each under its own signature."""
        if hello.HasField("refound"):
            self.keep(hello.refound)
        if hello.HasField("returned"):
            self.hear_own(teller, hello.returned)

    def keep(self, record: Signed) -> bool:
        """Take in a lasting record, and do what it says; it is passed on at once if it is news."""
        before = len(self.records.have()), self._identity.revision
        try:
            said = self.records.add(record)
        except (CertificateError, ProtocolError) as error:
            self._shared.refused("record", "", str(error))
            return False
        revision = self._identity.revision
        self._metrics.revision.set(revision)
        if (len(self.records.have()), revision) == before:
            return False
        self.unheard.append(record)
        if isinstance(said, Generation):
            self._enter(said)
        elif said is not None:
            self._apply(said)
        elif revision != before[1]:
            self._log.say("revoked certificates", number=revision)
        return True

    def owed(self, name: str) -> bool:
        """Return whether there is mass on the link to a peer that it may not have."""
        return self.peer.owes(name)

    def awaits(self, name: str) -> bool:
        """Return whether something was sent to a peer that it has not confirmed yet."""
        return self.peer.awaits(name)

    def renew(self, why: str) -> None:
        """Note that this peer runs on an older copy of its state, or was forgotten: it needs a new epoch."""
        if not self.stale:
            self.stale = why
            self._log.say("needs a new epoch", level=logging.ERROR, why=why)

    def hear_own(self, teller: str, word: Signed) -> None:
        """Take in this peer's own word that somebody returns: if its ledger is behind that, it is an older copy."""
        try:
            if self.claims.outdates(word, Progress.of(self.peer)):
                self._outdated()
        except CertificateError as error:
            self._shared.refused("claim", teller, f"{teller} returns what this peer has not signed: {error}")

    def check_words(self, name: str = "") -> None:
        """Check the words that came with pushes since, of one peer or of all."""
        for wrong in self.claims.check(name):
            self._shared.refused("record", name, wrong)

    def measure(self) -> None:
        """Bring the gauges up to date."""
        metrics, members, peer = self._metrics, self._members, self.peer
        metrics.generation.set(self.generation.number)
        metrics.mass.labels("held").set(peer.held / UNIT)
        metrics.mass.labels("waiting").set(peer.waiting / UNIT)
        metrics.mailbox.set(len(peer.peek()))
        metrics.neighbours.labels("online").set(len(members.online()))
        metrics.neighbours.labels("known").set(len(members.all))
        metrics.links.set(len(peer.unsettled))

    def _reapply(self) -> None:
        """Do again what lasting records say, to a peer that was restored or is new."""
        self.peer.most = self.generation.mass
        for said in self.records.said():
            self._apply(said)

    def _settle(self) -> None:
        """Take up work in a new epoch; unless something came meanwhile that unsettles it."""
        self.stale = ""
        if self.peer.status == "forgotten":
            self.renew("this peer was forgotten by the operator")
        elif self.records.next is not None:
            self._enter(self.records.next)
        elif self.claims.own.ahead_of(Progress.of(self.peer)):
            self._outdated()

    def _outdated(self) -> None:
        """Give up an epoch in which this peer has been further; a later generation's word waits for its record."""
        own, here = self.claims.own, Progress.of(self.peer)
        if own.generation == self.generation.number:
            self.renew(f"this peer has been further by its own signature: {own}, and here is {here}")

    def _apply(self, said: Said) -> None:
        if isinstance(said, Farewell):
            self._farewell(said)
        else:
            self._forget(*said)

    def _enter(self, generation: Generation) -> None:
        self.renew(f"the authority founds generation {generation.number}, by {', '.join(generation.founders)}")

    def _farewell(self, farewell: Farewell) -> None:
        if farewell.peer == self.peer.me:
            return
        try:
            back = self.peer.hear_farewell(farewell)
        except ProtocolError as error:
            self._shared.refused("claim", name_of(farewell.peer), str(error))
            return
        self._members.close(farewell.peer)
        self._log.say("a peer has left", left=farewell.peer, taken_back=back / UNIT)

    def _forget(self, peer: PeerId, founded: int) -> None:
        self.peer.forget(peer, founded if self.peer.rules.weights.moves_mass else 0)
        self._members.close(peer)
        self._log.say("a peer was forgotten", forgotten=peer)
        if peer == self.peer.me:
            self.renew("this peer was forgotten by the operator")
