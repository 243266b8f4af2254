"""What a running peer is: its Client, its ledger, whom it knows. Everything here happens in one event loop.

`Node` knows what to say and what to make of what it hears; `service` and `neighbours` carry it, `trainer` trains.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from pushcen.client import Client
from pushcen.errors import CertificateError, OptionError, ProtocolError
from pushcen.learning import Learner
from pushcen.protocol import UNIT, Answer, Contact, Farewell, Peer, PeerId, epoch_of, name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.claims import NOWHERE, Claims, Progress
from pushcen.runtime.disk import Disk
from pushcen.runtime.fingerprint import difference, digest
from pushcen.runtime.identity import Identity
from pushcen.runtime.logs import Log
from pushcen.runtime.members import Members
from pushcen.runtime.metrics import Metrics
from pushcen.runtime.records import Records
from pushcen.runtime.settings import Runtime
from pushcen.runtime.store import File, Store
from pushcen.runtime.wire import MAJOR, MINOR, Hello, Link, News, Signed


class Refusal(Exception):  # noqa: N818
    """Something that is not taken in. `reason` is a word for the metrics, the text is for people."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Node:
    """One peer, as its parts see it."""

    def __init__(
        self,
        identity: Identity,
        settings: Runtime,
        store: Store,
        client: Client[Learner],
        about: Mapping[str, str],
        address: str,
        rng: Random,
    ) -> None:
        self.identity, self.settings, self.store, self.client = identity, settings, store, client
        self.about, self.run, self.address, self.rng = dict(about), digest(about), address, rng
        self.log = Log(identity.name)
        self.metrics = Metrics(identity.name)
        self.members = Members(identity.name, settings, rng)
        self.records = Records(identity)
        self.claims = Claims(identity)
        self.stale = ""  # why this peer needs a new epoch, if it does
        self.stopping, self.leaving = asyncio.Event(), asyncio.Event()
        self.unheard: list[Signed] = []  # records to spread at once
        self._durable: dict[str, list[int]] = {}  # what is committed as credited
        self._committed = NOWHERE  # how far that is
        self.disk = Disk(self.log, self.metrics, settings.retry_first)
        self._ledger, self._committing = ThreadPoolExecutor(1, "ledger"), asyncio.Lock()
        self._record, self._recorded = Signed(), Contact(PeerId(""), 0)

    @property
    def peer(self) -> Peer:
        """This peer's side of the protocol."""
        return self.client.peer

    @property
    def now(self) -> float:
        """The monotonic time."""
        return time.monotonic()

    def close(self) -> None:
        """Let commits under way come to an end."""
        self._ledger.shutdown()

    # what is durable
    async def commit(self, learner: Any = None, files: Mapping[str, File] | None = None) -> None:
        """Commit the peer as it is now; with what the learner saved, if it has. Commits wait for each other: none that
        comes later may succeed before one that the disk has no room for yet.
        """
        async with self._committing:
            self._check_words()
            state, words = self.peer.save(), self.claims.unsaved()
            reached = Progress.of(self.peer)
            values = {"peer": state, "rng": self.client.rng.getstate(), "records": self.records.save()}
            values |= {"members": self.members.addresses(), **words}
            if learner is not None:
                values["learner"] = learner
            with self.metrics.commit.time():
                await self.disk.use(self._ledger, lambda: self.store.commit(values, files))
            self._durable, self._committed = state["credited"], reached
            self.claims.saved(words)

    def restore_records(self, records: Iterable[str]) -> None:
        """Take up the lasting records that were saved, and do again what they say."""
        for text in records:
            self.keep(Signed.FromString(bytes.fromhex(text)))
        self.unheard.clear()

    def begin(self) -> None:
        """Take up work, now that it is settled who this is."""
        self.stale = ""

    def reapply(self) -> None:
        """Do again what lasting records say, to a peer that was restored."""
        saved, self.records = self.records.save(), Records(self.identity)
        self.restore_records(saved)

    # what this peer says
    def hello(self, to: Contact | PeerId | None, *, name: str = "", news: bool = False) -> Hello:
        """Make a hello to a peer, or to whoever listens at an address."""
        other = to.peer if isinstance(to, Contact) else to
        message = Hello(
            major=MAJOR, minor=MINOR, peer=self.peer.me, boot=self.peer.boot, address=self.address, run=self.run,
            news=news,
        )  # fmt: skip
        if other is not None:
            answer = self.peer.answer(other)
            committed = self._durable.get(other, [0])[0]
            message.link.CopyFrom(
                Link(sender=other, credited=_bytes(min(answer.credited, committed)), accepted=_bytes(answer.accepted))
            )
        if name := name or (name_of(other) if other else ""):
            if not news:  # else its newest word came with this very push
                self._check_words(name)
            self.claims.give_back(message, name, self.members.all.get(name))
        if self.peer.status != "open":
            message.refusal, message.text = "leaving", f"{self.peer.me} is {self.peer.status}"
        elif self.stale:
            message.refusal, message.text = "starting", f"{self.peer.me} takes a new epoch"
        return message

    def progress(self) -> Signed:
        """Give this peer's own word on how far it has come, as far as that is durable."""
        return self.claims.sign(self._committed)

    def record(self) -> Signed:
        """Give this peer's own word on where it listens."""
        if self._recorded != self.peer.contact:
            fields = {"kind": "member", "peer": self.peer.me, "boot": self.peer.boot, "address": self.address}
            self._record, self._recorded = self.identity.sign(fields), self.peer.contact
        return self._record

    def news(self, have: Iterable[int] | None = None) -> News:
        """Make gossip: some members, and the lasting records that somebody who has `have` does not."""
        records = [] if have is None else self.records.missing(have)
        return News(members=[self.record(), *self.members.sample(8)], records=records, have=self.records.have())

    # what this peer hears
    def greet(self, caller: str, hello: Hello) -> Hello:
        """Answer a hello."""
        self.check(caller, hello)
        peer = check_id(hello.peer)
        answer = self.hello(peer, name=caller)
        if hello.run != self.run:
            answer.refusal, answer.text = "run", "this run is set up in another way"
            answer.about.update(self.about)
            self.refused("run", caller, "a hello from a run that is set up in another way")
            return answer
        self.hear(caller, hello)
        if hello.address:
            self.members.meet(caller, hello.address, self.now, self.owed)
        return answer

    def check(self, name: str, hello: Hello) -> None:
        """Refuse a hello that this version cannot read, or that is not of who says it."""
        if hello.major != MAJOR:
            raise Refusal(
                "version", f"{name} speaks version {hello.major} of the protocol, {self.identity.name} {MAJOR}"
            )
        if name_of(check_id(hello.peer)) != name:
            raise Refusal("malformed", f"{name} calls itself {hello.peer}")
        if hello.boot < 1:
            raise Refusal("malformed", f"{name} says it has never started")

    def hear(self, name: str, hello: Hello) -> None:
        """Take in what a peer says of itself, of the link to it, and of this peer's past."""
        peer, me = check_id(hello.peer), self.peer.me
        if hello.HasField("returned"):
            self.hear_own(name, hello.returned)
        if hello.known and name_of(check_id(hello.known)) == name_of(me) and not self.stale:
            known = (epoch_of(check_id(hello.known)), hello.known_boot)
            if known > (epoch_of(me), self.peer.boot):
                self.refused("claim", name, f"{name} knows {hello.known}, boot {hello.known_boot}, and cannot show it")
        if hello.HasField("link") and hello.link.sender == me:
            credited, accepted = (
                int.from_bytes(total, "little") for total in (hello.link.credited, hello.link.accepted)
            )
            try:
                self.peer.hear(Answer(peer, hello.boot, credited, accepted))
            except ProtocolError as error:
                self.refused("claim", name, str(error))

    def hear_own(self, teller: str, word: Signed) -> None:
        """Take in this peer's own word that somebody returns: if its ledger is behind that, it is an older copy."""
        here = Progress.of(self.peer)
        try:
            if self.claims.outdates(word, here):
                self.renew(f"this peer has been further by its own signature: {self.claims.own}, and here is {here}")
        except CertificateError as error:
            self.refused("claim", teller, f"{teller} returns what this peer has not signed: {error}")

    def answered(self, name: str, hello: Hello) -> None:
        """Take in the answer to a hello or a push."""
        self.check(name, hello)
        self.hear(name, hello)
        if name not in self.members.all:
            return
        if hello.refusal in ("run", "leaving", "starting", "revoked"):
            text = hello.text
            if hello.refusal == "run":
                text = difference(self.about, hello.about)
            self.log.seldom(
                f"refused by {name}", "refused by a neighbour", neighbour=name, reason=hello.refusal, text=text
            )
            self.members.silent(name, self.now, text)
            return
        self.members.heard(name, Contact(check_id(hello.peer), hello.boot), self.now)

    def gossip(self, news: News) -> None:
        """Take in what somebody passes on. Each statement is checked by its own signature."""
        for signed in news.members[:64]:
            self._learn(signed)
        for record in news.records[:100]:
            self.keep(record)

    def keep(self, record: Signed) -> bool:
        """Take in a lasting record, and do what it says; it is passed on at once if it is news."""
        before = len(self.records.have()), self.identity.revision
        try:
            said = self.records.add(record)
        except (CertificateError, ProtocolError) as error:
            self.refused("record", "", str(error))
            return False
        self.metrics.revision.set(self.identity.revision)
        if (len(self.records.have()), self.identity.revision) == before:
            return False
        self.unheard.append(record)
        if isinstance(said, Farewell):
            self._farewell(said)
        elif said is not None:
            self._forget(*said)
        else:
            self.log.say("revoked certificates", number=self.identity.revision)
        return True

    def owed(self, name: str) -> bool:
        """Say whether there is mass on the link to a peer that it may not have."""
        return self.peer.owes(name)

    def renew(self, why: str) -> None:
        """Note that this peer runs on an older copy of its state, or was forgotten: it needs a new epoch."""
        if not self.stale:
            self.stale = why
            self.log.say("needs a new epoch", level=logging.ERROR, why=why)

    def refused(self, reason: str, caller: str, text: str) -> None:
        """Count a refusal, and log it at a bounded rate."""
        self.metrics.refusals.labels(reason).inc()
        self.log.seldom(f"{reason} {caller}", "refused", reason=reason, caller=caller, text=text)

    def measure(self) -> None:
        """Bring the gauges up to date."""
        metrics, peer = self.metrics, self.peer
        metrics.mass.labels("held").set(peer.held / UNIT)
        metrics.mass.labels("waiting").set(peer.waiting / UNIT)
        metrics.mailbox.set(len(peer.peek()))
        metrics.neighbours.labels("online").set(len(self.members.online()))
        metrics.neighbours.labels("known").set(len(self.members.all))
        metrics.links.set(len(peer.unsettled))

    def _check_words(self, name: str = "") -> None:
        for wrong in self.claims.check(name):
            self.refused("record", name, wrong)

    def _learn(self, signed: Signed) -> None:
        try:
            author, fields = self.identity.verify(signed)
            if author is None or fields.get("kind") != "member":
                return
            if author == self.identity.name:
                self.hear_own("", signed)
                return
            self.members.learn(signed, author, fields, self.now, self.owed)
        except (CertificateError, ProtocolError, OptionError, KeyError, TypeError, ValueError) as error:
            self.refused("record", "", str(error))

    def _farewell(self, farewell: Farewell) -> None:
        if farewell.peer == self.peer.me:
            return
        try:
            back = self.peer.hear_farewell(farewell)
        except ProtocolError as error:
            self.refused("claim", name_of(farewell.peer), str(error))
            return
        self.members.close(farewell.peer)
        self.log.say("a peer has left", left=farewell.peer, taken_back=back / UNIT)

    def _forget(self, peer: PeerId, founded: int) -> None:
        self.peer.forget(peer, founded)
        self.members.close(peer)
        self.log.say("a peer was forgotten", forgotten=peer)
        if peer == self.peer.me:
            self.renew("this peer was forgotten by the operator")


def _bytes(total: int) -> bytes:
    return total.to_bytes(16, "little")
