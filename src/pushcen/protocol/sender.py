"""A peer's sending side: what it owes whom, what has arrived, and what comes back."""

from collections.abc import Container, Mapping, Sequence
from itertools import islice
from math import inf

from pushcen.errors import ProtocolError
from pushcen.protocol.epochs import Epochs
from pushcen.protocol.ledger import NOBODY, NONE
from pushcen.protocol.messages import LIMIT, Answer, Contact, Envelope, Farewell, Payload, PeerId, check_id
from pushcen.protocol.validation import number

_new = tuple.__new__  # makes a named tuple at a third of the price of calling its class


class Sender(Epochs):
    """The sender's end of all links.

    A link is *unsettled* while something sent on it is not known to be accepted by the receiver's current boot.
    `unsettled` lists these links, longest untried first, each with the sequence of its newest envelope, what that
    added, and whether something was unsettled before it. A driver whose messages take time lists in `expects` from whom
    an answer can still come: these links are not served again for now. A driver that sets `most`, all mass that was
    ever founded, bounds what is outstanding: no push lets a link's sent less confirmed exceed it; the rest is kept.
    """

    __slots__ = ()

    def arrived(self, envelope: Envelope, boot: int) -> None:
        """Note that the receiver has accepted `envelope`, in its boot of this number.

        It is `hear` with what that proves: the total accepted is this envelope's, or more.
        """
        if envelope[0] != self.me:
            raise ProtocolError(f"envelope of {envelope.sender}: its arrival says nothing to {self.me}")
        peer, total = envelope[1], envelope[4]
        if boot == 1 and not self.boots and total == self.sent.get(peer, 0):  # the hot path of `_accepts`
            self.unsettled.pop(peer, None)
        elif self._is_open(peer):
            self._accepts(peer, number(boot, "boot", 1), total, latest=False)

    def hear(self, answer: Answer) -> None:
        """Note what a receiver says of the link to it. News of an earlier boot or epoch changes nothing."""
        peer, boot, credited, accepted = answer
        check_id(peer)
        for value, what, least in ((boot, "boot", 1), (credited, "credited", 0), (accepted, "accepted", 0)):
            number(value, what, least)
        if self._is_open(peer):
            self._accepts(peer, boot, max(accepted, credited), latest=True)
        self._spoke(peer)
        if credited and (self.most is not None or self.status == "leaving") and credited <= self.sent.get(peer, 0):
            if self.confirmed is NONE:
                self.confirmed = {}
            self.confirmed[peer] = max(credited, self.confirmed.get(peer, 0))

    def failed(self, envelope: Envelope) -> int:
        """Take back what `envelope` added, since no byte of any copy of it left this machine; return how much.

        Nothing comes back if a newer envelope was made for the link, which says the same total.
        """
        if envelope.sender != self.me:
            raise ProtocolError(f"envelope of {envelope.sender}: only its sender can take it back, not {self.me}")
        peer = envelope.receiver
        newest, added, before = self.unsettled.get(peer, (0, 0, True))
        if newest != envelope.sequence:
            return 0
        self.sent[peer] -= added
        self.held += added
        if before:
            self.unsettled[peer] = (newest, 0, True)
        else:
            del self.unsettled[peer]
        return added

    def serve(self, payload: Payload, limit: int) -> list[Envelope]:
        """Make newer envelopes with no new mass for unsettled links, at most `limit`, longest untried first."""
        return self._push((), 0, payload, number(limit, "limit", 0, LIMIT))

    def hear_farewell(self, farewell: Farewell) -> int:
        """Close the link to a peer that leaves, and take back what it will never credit; return how much."""
        peer = check_id(farewell.peer)
        if not isinstance(farewell.credited, Mapping):
            raise ProtocolError(f"credited = {farewell.credited!r:.80}: must be a dict")
        credited, sent = number(farewell.credited.get(self.me, 0), "credited"), self.sent.get(peer, 0)
        if peer in self.closed:
            return 0
        if not sent and self.is_over(peer):  # the link may be dropped already; if it is not, it may be now
            if self._came_from(peer):
                self._close(peer)
            return 0
        if credited > sent:
            raise ProtocolError(f"{peer} says it has credited {credited}, more than the {sent} sent to it")
        self._close(peer)
        if sent:
            self.sent[peer] = credited
        self.held += sent - credited
        return sent - credited

    def forget(self, who: PeerId, founded: int) -> None:
        """Write off a peer that is gone for good, founded with so much. Of itself: only a new epoch is left."""
        check_id(who)
        number(founded, "founded")
        if who == self.me:
            self.status = "forgotten"
            return
        if self.forgotten is NONE:
            self.forgotten = {}
        self.forgotten.setdefault(who, founded)
        self._close(who)

    def room(self, peer: PeerId) -> float:
        """Return how much more may be sent to a peer before it confirms some of it: infinity without `most`.

        >>> from pushcen.protocol import UNIT, Peer
        >>> a, b = Peer.found("a"), Peer.found("b")
        >>> a.most = UNIT // 4
        >>> _ = a.begin(), a.finish([b.contact], payload=None)
        >>> a.held == UNIT * 3 // 4, a.room(b.me)
        (True, 0)
        """
        return inf if self.most is None else self.most - self.sent.get(peer, 0) + self.confirmed.get(peer, 0)

    def awaits(self, name: str) -> bool:
        """Return whether something that was sent to a peer is not confirmed as credited, where that is followed.

        >>> from pushcen.protocol import UNIT, Peer
        >>> a, b = Peer.found("a"), Peer.found("b")
        >>> a.most = UNIT
        >>> _ = a.begin(), a.finish([b.contact], payload=None)
        >>> a.awaits("b"), a.awaits("c")
        (True, False)
        """
        peer = PeerId(f"{name}/{self.latest_epoch(name)}")
        return self._is_open(peer) and self.sent.get(peer, 0) > self.confirmed.get(peer, 0)

    def _takers(self, contacts: Sequence[Contact]) -> Sequence[Contact]:
        """Return those of `contacts` that new mass may go to."""
        if self.closed or self._latest is not None:
            contacts = [contact for contact in contacts if self._is_open(contact[0])]
        if self.most is not None:
            contacts = [contact for contact in contacts if self.room(contact[0]) > 0]
        return contacts

    def _push_what_fits(
        self, receivers: Sequence[Contact], share: int, payload: Payload, repairs: int
    ) -> list[Envelope]:
        """Push `share` to each receiver, or what its link has room for."""
        if self.most is None:
            return self._push(receivers, share, payload, repairs)
        envelopes, full = [], []
        for contact in receivers:
            room = self.room(contact[0])
            if room >= share:
                full.append(contact)
            elif room > 0:
                envelopes += self._push([contact], int(room), payload, 0)
        return envelopes + self._push(full, share, payload, repairs, {envelope[1] for envelope in envelopes})

    def _push(
        self,
        receivers: Sequence[Contact],
        share: int,
        payload: Payload,
        repairs: int,
        skip: Container[PeerId] = (),
    ) -> list[Envelope]:
        """Send `share` to each receiver, and no new mass to as many as `repairs` unsettled links beside them."""
        sent, unsettled, me = self.sent, self.unsettled, self.me
        sequence = self.sequence = self.sequence + 1
        self.held -= share * len(receivers)
        settled = not unsettled
        push = (sequence, share, False)
        envelopes = []
        for peer, boot in receivers:
            before = sent.get(peer, 0)
            total = sent[peer] = before + share
            if settled and boot == 1:  # the hot path of `_note`
                unsettled[peer] = push
            else:
                self._note(peer, boot, push, new=not before)
            envelopes.append(_new(Envelope, (me, peer, 0, sequence, total, payload)))
        if len(sent) != self._seen[0]:
            self._follow()
        if repairs and len(unsettled) > len(receivers):
            served, waiting = {contact[0] for contact in receivers}, self.expects
            others = (who for who in unsettled if who not in served and who not in waiting and who not in skip)
            for peer in list(islice(others, repairs)):
                del unsettled[peer]
                unsettled[peer] = (sequence, 0, True)
                envelopes.append(Envelope(me, peer, 0, sequence, sent[peer], payload))
        return envelopes

    def _note(self, peer: PeerId, boot: int, push: tuple[int, int, bool], new: bool) -> None:
        """List `peer` as unsettled by `push`, in whatever state the link to it was."""
        restarted = self._restarted(peer, boot)
        before = self.unsettled.pop(peer, None) is not None or (restarted and not new)
        self.unsettled[peer] = (*push[:2], before)

    def _accepts(self, peer: PeerId, boot: int, total: int, *, latest: bool) -> None:
        """Note that a boot of `peer` has accepted a total; if not its `latest` word, then that much or more."""
        sent = self.sent.get(peer, 0)
        if total > sent:
            raise ProtocolError(
                f"{peer} has {total} from {self.me}, which has sent it {sent}:"
                f" {self.me} runs on an older copy of its state, and needs a new epoch"
            )
        if peer not in self.sent or boot < self.boots.get(peer, 1):
            return
        restarted = self._restarted(peer, boot)
        if total == sent:
            self.unsettled.pop(peer, None)
        elif peer not in self.unsettled:
            if latest or restarted:
                self.unsettled[peer] = (0, 0, True)
        elif restarted:  # so what was accepted before the newest push may be in doubt again
            newest, added, before = self.unsettled[peer]
            self.unsettled[peer] = (newest, added, before or total < sent - added)

    def _restarted(self, peer: PeerId, boot: int) -> bool:
        """Return whether a boot of `peer` is later than those known, and remember it."""
        if boot <= self.boots.get(peer, 1):
            return False
        if self.boots is NONE:
            self.boots = {}
        self.boots[peer] = boot
        return True

    def _is_open(self, peer: PeerId) -> bool:
        """Return whether `peer` may still take something in."""
        return peer not in self.closed and not self.is_over(peer)

    def _came_from(self, peer: PeerId) -> bool:
        """Return whether there is anything here that `peer` sent."""
        return peer in self.credited

    def _close(self, peer: PeerId) -> None:
        if self.closed is NOBODY:
            self.closed = set()
        self.closed.add(peer)
        self.unsettled.pop(peer, None)
        self._ended(peer)
