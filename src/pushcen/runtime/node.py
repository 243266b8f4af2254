"""What a peer says to others, and makes of what it hears. Everything here happens in one event loop.

`service` and `channels` carry it; `DurablePeer` is whom it is about, `trainer` trains.
"""

import logging
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from pushcen.codec import Payload
from pushcen.errors import CertificateError, OptionError, ProtocolError
from pushcen.protocol import Answer, Contact, Envelope, PeerId, epoch_of, name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.claims import LONGEST, Word
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.fingerprint import difference, digest, read_varying
from pushcen.runtime.network import generation_of
from pushcen.runtime.offers import read_holds
from pushcen.runtime.shared import Refusal, Shared
from pushcen.runtime.wire import MAJOR, MINOR, Hello, News, Signed

if TYPE_CHECKING:
    from pushcen.runtime.exchange import Exchanging
    from pushcen.runtime.reach.tunnels import Tunnels


class Received(dict[int, Payload]):
    """What came in one envelope, and when."""

    def __init__(self, part: int, payload: Payload, at: float) -> None:
        super().__init__({part: payload})
        self.at = at


class PeerNode:
    """One peer among others: `address` is where they reach it, `about` what must agree between them, but for what is
    `usual` here and missing there; what `varies` is only told.
    """

    def __init__(
        self,
        me: DurablePeer,
        shared: Shared,
        about: Mapping[str, str],
        address: str,
        usual: Mapping[str, str] | None = None,
        varies: Mapping[str, str] | None = None,
    ) -> None:
        self.about, self.address, self.setup = dict(about), address, digest(about)
        self.usual, self.varies = dict(usual or {}), dict(varies or {})
        self._agree = digest({key: fact for key, fact in about.items() if key not in self.usual})
        self._me, self._identity, self._members = me, shared.identity, shared.members
        self._records, self._claims = me.records, me.claims
        self._log, self._metrics, self._refused = shared.log, shared.metrics, shared.refused
        self._record, self._seen = Signed(), shared.seen
        self._recorded: tuple[Contact, str, int] | None = None  # whom and what that is about, and by which certificate
        self._serial = 0
        self.exchanging: Exchanging | None = None  # where the method asks for answers
        self.tunnels: Tunnels | None = None  # to those whom it hosts

    def hello(self, to: Contact | PeerId | None, *, name: str = "", news: bool = False) -> Hello:
        """Return a hello to a peer, or to whoever listens at an address."""
        own, other = self._me.peer, to.peer if isinstance(to, Contact) else to
        message = Hello(
            major=MAJOR, minor=MINOR, peer=own.me, boot=own.boot, address=self.address, run=self.setup, news=news
        )
        if not news:
            message.agree = self._agree
        if self._me.offers is not None:
            message.holds.extend(self._me.offers.said())
        if other is not None:
            answer = own.answer(other)
            credited = min(answer.credited, self._me.committed(other))
            link = message.link
            link.sender, link.credited, link.accepted = other, _bytes(credited), _bytes(answer.accepted)
        if name := name or (name_of(other) if other else ""):
            if not news:  # else its newest word came with this very push
                self._me.check_words(name)
            self._claims.give_back(message, name, self._members.all.get(name))
        if own.status != "open":
            message.refusal, message.text = "leaving", f"{own.me} is {own.status}"
        elif self._me.stale:
            message.refusal, message.text = "starting", f"{own.me} takes a new epoch"
        refound = self._records.refound
        if refound is not None and (other is None or generation_of(other) != self._records.newest.number):
            message.refound.CopyFrom(refound)
        return message

    def first_hello(self, name: str) -> Hello:
        """Return a hello to a peer of this name; to one that has not answered of late, with all there is to compare."""
        member = self._members.all.get(name)
        message = self.hello(member.contact if member else None, name=name)
        if member is None or member.contact is None or member.failures:
            message.varies.update(self.varies)
            if name in self._seen.differs:
                message.about.update(self.about)
        return message

    def refusal(self, caller: str, refusal: Refusal) -> Hello:
        """Return the answer to a call that was refused."""
        answer = self.hello(None, name=caller)
        answer.refusal, answer.text = refusal.reason, str(refusal)[:500]
        return answer

    def record(self) -> Signed:
        """Return this peer's own word on where it listens."""
        now = self._me.peer.contact, self.address, self._identity.serial
        if self._recorded != now:
            contact = now[0]
            fields = {"kind": "member", "peer": contact.peer, "boot": contact.boot, "address": self.address}
            self._record = self._identity.sign({**fields, "serial": self._serial})
            self._recorded = now
            self._serial += 1
        return self._record

    def news(self, have: Iterable[int] | None = None) -> News:
        """Return gossip: some members, and the lasting records that somebody who has `have` does not."""
        records = [] if have is None else self._records.missing(have)
        mine = [self.record()] if epoch_of(self._me.peer.me) and self.address else []
        return News(members=[*mine, *self._members.sample(8)], records=records, have=self._records.have())

    def greet(self, caller: str, hello: Hello) -> Hello:
        """Answer a hello."""
        self.check(caller, hello)
        self._seen.called.note(caller)
        peer = check_id(hello.peer)
        if generation_of(peer) != self._me.generation.number:
            return self._greet_other(caller, hello)
        answer = self.hello(peer, name=caller)
        if (hello.agree != self._agree) if hello.agree else (hello.run != self.setup):
            answer.refusal, answer.text = "run", "this run is set up in another way"
            answer.about.update(self.about)
            text = "a hello from a run that is set up in another way"
            if hello.about:
                text = difference(self.about, hello.about, usual=self.usual)
                self._seen.refused(caller, text)
            self._refused("run", caller, text)
            return answer
        self._seen.differs.pop(caller, None)
        if hello.varies:
            answer.varies.update(self.varies)
        self.hear(caller, hello)
        self._meet(caller, hello)
        self._note_varying(caller, hello)
        self._note_references(caller, hello)
        return answer

    def check(self, name: str, hello: Hello) -> None:
        """Refuse a hello that this version cannot read, or that is not of who says it."""
        if hello.major != MAJOR:
            raise Refusal(
                "version", f"{name} speaks version {hello.major} of the protocol, {self._identity.name} {MAJOR}"
            )
        if name_of(check_id(hello.peer)) != name:
            raise Refusal("malformed", f"{name} calls itself {hello.peer}")
        if hello.boot < 1:
            raise Refusal("malformed", f"{name} says it has never started")
        if self._me.offers is not None:
            read_holds(hello)

    def hear(self, name: str, hello: Hello) -> None:
        """Take in what a peer says of itself, of the link to it, and of this peer's past."""
        self._me.hear_past(name, hello)
        peer, own = check_id(hello.peer), self._me.peer
        if generation_of(peer) != self._me.generation.number:
            return
        if hello.known and name_of(check_id(hello.known)) == name_of(own.me) and not self._me.stale:
            known = (epoch_of(check_id(hello.known)), hello.known_boot)
            if known > (epoch_of(own.me), own.boot):
                self._refused("claim", name, f"{name} knows {hello.known}, boot {hello.known_boot}, and cannot show it")
        if hello.HasField("link") and hello.link.sender == own.me:
            credited, accepted = (
                int.from_bytes(total, "little") for total in (hello.link.credited, hello.link.accepted)
            )
            try:
                own.hear(Answer(peer, hello.boot, credited, accepted))
            except ProtocolError as error:
                self._refused("claim", name, str(error))

    def answered(self, name: str, hello: Hello) -> None:
        """Take in the answer to a hello or a push."""
        self.check(name, hello)
        self.hear(name, hello)
        if name not in self._members.all:
            return
        self._note_references(name, hello)
        if hello.refusal in ("run", "leaving", "starting", "revoked", "generation") or (
            generation_of(check_id(hello.peer)) != self._me.generation.number
        ):
            text = hello.text
            if hello.refusal == "run":
                text = difference(self.about, hello.about, usual=self.usual)
                self._seen.refused(name, text)
            self._log.seldom(
                f"refused by {name}", "refused by a neighbour", neighbour=name, reason=hello.refusal, text=text
            )
            self._members.silent(name, monotonic(), text)
            return
        self._seen.answered(name)
        self._note_varying(name, hello)
        member = self._members.all[name]
        if member.contact is None or member.failures:
            event = "a neighbour is met" if member.contact is None else "a neighbour answers again"
            self._log.seldom(f"met {name}", event, level=logging.INFO, neighbour=name, address=member.address)
        self._members.heard(name, Contact(check_id(hello.peer), hello.boot), monotonic())

    def gossip(self, news: News) -> None:
        """Take in what somebody passes on. Each statement is checked by its own signature."""
        for signed in news.members[:64]:
            if not self._members.has(signed):
                self._learn(signed)
        for record in news.records[:100]:
            self._me.keep(record)

    def check_push(self, caller: str, envelope: Envelope) -> None:
        """Refuse an envelope that is not for this peer as it is now, or not by who sends it."""
        own = self._me.peer
        if name_of(envelope.sender) != caller:
            raise Refusal("malformed", f"{caller} sends an envelope of {envelope.sender}")
        if generation_of(envelope.sender) != self._me.generation.number:
            raise Refusal("generation", f"{envelope.sender} and {own.me} are of two generations")
        self.check_open()
        if envelope.receiver != own.me:
            raise Refusal("epoch", f"an envelope for {envelope.receiver}; this is {own.me}")
        if self.exchanging is not None:
            self.exchanging.check(envelope)

    def check_open(self) -> None:
        """Refuse everything while this peer is leaving, or in no epoch."""
        own = self._me.peer
        if self._me.stale or own.status != "open":
            raise Refusal("leaving", f"{own.me} takes nothing in now")

    def check_mass(self, envelope: Envelope) -> None:
        """Refuse more mass under way on a link, sent and not credited, than there ever was: no honest sender lets it
        come to that, however much others have made up.
        """
        own = self._me.peer
        outstanding = envelope.total - own.answer(envelope.sender).credited
        if own.most is not None and outstanding > own.most:
            raise Refusal("mass", f"{envelope.sender} claims to have {outstanding} quanta under way; {own.most} is all")

    def take(self, envelope: Envelope, payload: Payload, word: Word | None) -> Hello:
        """Take an envelope in, with its payload and its sender's word, and return the answer."""
        self.check_mass(envelope)
        received = Received(envelope.part, payload, monotonic())
        news = self._me.client.receive(Envelope(*envelope[:-1], received))
        if news:
            self._seen.pushed.note(name_of(envelope.sender))
            if self.exchanging is not None:
                self.exchanging.received(envelope, payload)
        if word is not None:
            self._claims.take(word)
        self._metrics.bytes.labels("in").inc(len(payload))
        self._metrics.received.labels("news" if news else "old").inc()
        self._seen.facts.arrived(name_of(envelope.sender), len(payload), news=news)
        return self.hello(envelope.sender, news=news)

    def _greet_other(self, caller: str, hello: Hello) -> Hello:
        """Refuse who is in another generation, and show it the record on this one, or take its own up."""
        self._me.hear_past(caller, hello)
        self._meet(caller, hello)
        answer = self.hello(None, name=caller)
        answer.refusal, answer.text = "generation", f"{hello.peer} and {self._me.peer.me} are of two generations"
        self._refused("generation", caller, answer.text)
        return answer

    def _note_references(self, name: str, hello: Hello) -> None:
        if self._me.offers is not None:
            self._members.says(name, read_holds(hello))

    def _note_varying(self, name: str, hello: Hello) -> None:
        if hello.varies and name in self._members.all:
            self._members.all[name].varies = read_varying(hello.varies)

    def _meet(self, caller: str, hello: Hello) -> None:
        if hello.address and hello.peer not in self._members.gone:  # who leaves says hello to the end
            self._members.meet(caller, hello.address, monotonic(), self._me.owed)

    def _learn(self, signed: Signed) -> None:
        try:
            if signed.ByteSize() > LONGEST:
                raise CertificateError(f"a peer's word of {signed.ByteSize()} bytes, {LONGEST} at most")
            author, fields = self._identity.verify(signed)
            if author is None or fields.get("kind") != "member":
                return
            if author == self._identity.name:
                self._me.hear_own("", signed)
                return
            self._members.learn(signed, author, fields, monotonic(), self._me.owed)
        except (CertificateError, ProtocolError, OptionError, KeyError, TypeError, ValueError) as error:
            self._refused("record", "", str(error))


def _bytes(total: int) -> bytes:
    return total.to_bytes(16, "little")
