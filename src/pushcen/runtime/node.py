"""What a running peer is: its Client, its ledger, whom it knows. Everything here happens in one event loop.

`PeerNode` knows what to say and what to make of what it hears; `service` and `neighbours` carry it, `trainer` trains.
"""

import asyncio
from collections.abc import Iterable, Mapping
from random import Random

from pushcen.client import Client
from pushcen.errors import CertificateError, OptionError, ProtocolError
from pushcen.learning import Learner
from pushcen.protocol import UNIT, Answer, Contact, PeerId, epoch_of, name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.claims import LONGEST
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.fingerprint import difference, digest
from pushcen.runtime.network import generation_of
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.state_folder import StateFolder
from pushcen.runtime.wire import MAJOR, MINOR, Hello, News, Signed


class Refusal(Exception):  # noqa: N818
    """Something that is not taken in. `reason` is a word for the metrics, the text is for people."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class PeerNode(DurablePeer):
    """One peer, as its parts see it."""

    def __init__(
        self,
        identity: Identity,
        settings: RuntimeOptions,
        store: StateFolder,
        client: Client[Learner],
        about: Mapping[str, str],
        address: str,
        rng: Random,
    ) -> None:
        super().__init__(identity, settings, store, client, rng)
        self.about, self.run, self.address, self.rng = dict(about), digest(about), address, rng
        self.stopping, self.leaving = asyncio.Event(), asyncio.Event()
        self._record, self._recorded = Signed(), Contact(PeerId(""), 0)

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
            link, credited = message.link, min(answer.credited, committed)
            link.sender, link.credited, link.accepted = other, _bytes(credited), _bytes(answer.accepted)
        if name := name or (name_of(other) if other else ""):
            if not news:  # else its newest word came with this very push
                self._check_words(name)
            self.claims.give_back(message, name, self.members.all.get(name))
        if self.peer.status != "open":
            message.refusal, message.text = "leaving", f"{self.peer.me} is {self.peer.status}"
        elif self.stale:
            message.refusal, message.text = "starting", f"{self.peer.me} takes a new epoch"
        refound = self.records.refound
        if refound is not None and (other is None or generation_of(other) != self.records.newest.number):
            message.refound.CopyFrom(refound)
        return message

    def record(self) -> Signed:
        """Give this peer's own word on where it listens."""
        if self._recorded != self.peer.contact:
            fields = {"kind": "member", "peer": self.peer.me, "boot": self.peer.boot, "address": self.address}
            self._record, self._recorded = self.identity.sign(fields), self.peer.contact
        return self._record

    def news(self, have: Iterable[int] | None = None) -> News:
        """Make gossip: some members, and the lasting records that somebody who has `have` does not."""
        records = [] if have is None else self.records.missing(have)
        mine = [self.record()] if epoch_of(self.peer.me) else []
        return News(members=[*mine, *self.members.sample(8)], records=records, have=self.records.have())

    # what this peer hears
    def greet(self, caller: str, hello: Hello) -> Hello:
        """Answer a hello."""
        self.check(caller, hello)
        peer = check_id(hello.peer)
        if generation_of(peer) != self.generation.number:
            return self._greet_other(caller, hello)
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

    def _greet_other(self, caller: str, hello: Hello) -> Hello:
        """Refuse who is in another generation, and show it the record on this one, or take its own up."""
        self.hear_past(caller, hello)
        if hello.address:
            self.members.meet(caller, hello.address, self.now, self.owed)
        answer = self.hello(None, name=caller)
        answer.refusal, answer.text = "generation", f"{hello.peer} and {self.peer.me} are of two generations"
        self.refused("generation", caller, answer.text)
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
        self.hear_past(name, hello)
        if generation_of(peer) != self.generation.number:
            return
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

    def answered(self, name: str, hello: Hello) -> None:
        """Take in the answer to a hello or a push."""
        self.check(name, hello)
        self.hear(name, hello)
        if name not in self.members.all:
            return
        if hello.refusal in ("run", "leaving", "starting", "revoked", "generation") or (
            generation_of(check_id(hello.peer)) != self.generation.number
        ):
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

    def measure(self) -> None:
        """Bring the gauges up to date."""
        metrics, peer = self.metrics, self.peer
        metrics.generation.set(self.generation.number)
        metrics.mass.labels("held").set(peer.held / UNIT)
        metrics.mass.labels("waiting").set(peer.waiting / UNIT)
        metrics.mailbox.set(len(peer.peek()))
        metrics.neighbours.labels("online").set(len(self.members.online()))
        metrics.neighbours.labels("known").set(len(self.members.all))
        metrics.links.set(len(peer.unsettled))

    def _learn(self, signed: Signed) -> None:
        try:
            if signed.ByteSize() > LONGEST:
                raise CertificateError(f"a peer's word of {signed.ByteSize()} bytes, {LONGEST} at most")
            author, fields = self.identity.verify(signed)
            if author is None or fields.get("kind") != "member":
                return
            if author == self.identity.name:
                self._hear_own("", signed)
                return
            self.members.learn(signed, author, fields, self.now, self.owed)
        except (CertificateError, ProtocolError, OptionError, KeyError, TypeError, ValueError) as error:
            self.refused("record", "", str(error))


def _bytes(total: int) -> bytes:
    return total.to_bytes(16, "little")
