"""A peer's sending side: what it owes whom, what has arrived, and what comes back."""

from collections.abc import Iterable, Sequence
from itertools import islice

from pushcen.errors import ProtocolError
from pushcen.protocol.ledger import Ledger
from pushcen.protocol.messages import Answer, Contact, Envelope, Farewell, Payload, PeerId, epoch_of, name_of

_new = tuple.__new__  # makes a named tuple at a third of the price of calling its class


class Sender(Ledger):
    """The sender's end of all links.

    A link is *unsettled* while something sent on it is not known to be accepted by the receiver's current boot.
    `unsettled` lists these links, longest untried first, each with the sequence of its newest envelope, what that
    added, and whether something was unsettled before it. A driver whose messages take time lists in `expects` from whom
    an answer can still come: these links are not served again for now.
    """

    __slots__ = ()

    def arrived(self, envelope: Envelope, boot: int) -> None:
        """Note that the receiver has accepted `envelope`, in its boot of this number: the short form of `hear`."""
        peer = envelope[1]
        current = (boot == 1 and not self.boots) or self._is_current(peer, boot)
        if current and peer in self.unsettled and envelope[4] >= self.sent[peer]:
            del self.unsettled[peer]

    def hear(self, answer: Answer) -> None:
        """Note what a receiver says of the link to it. News of an earlier boot changes nothing."""
        peer, boot, credited, accepted = answer
        sent = self.sent.get(peer, 0)
        if peer in self.closed:
            return
        if credited > sent or accepted > sent:
            raise ProtocolError(
                f"{peer} has {max(credited, accepted)} from {self.me}, which has sent it {sent}:"
                f" {self.me} runs on an older copy of its state, and needs a new epoch"
            )
        self._supersede(peer)
        if not self._is_current(peer, boot):
            return
        if self.status == "leaving":
            self.confirmed = {**self.confirmed, peer: max(credited, self.confirmed.get(peer, 0))}
        if accepted == sent:
            self.unsettled.pop(peer, None)
        elif peer not in self.unsettled:
            self.unsettled[peer] = (0, 0, True)

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
        return self._push((), 0, payload, limit)

    def hear_farewell(self, farewell: Farewell) -> int:
        """Close the link to a peer that leaves, and take back what it will never credit; return how much."""
        peer = farewell.peer
        credited, sent = farewell.credited.get(self.me, 0), self.sent.get(peer, 0)
        if peer in self.closed:
            return 0
        if credited > sent:
            raise ProtocolError(f"{peer} says it has credited {credited}, more than the {sent} sent to it")
        self._close(peer)
        if sent:
            self.sent[peer] = credited
        self.held += sent - credited
        return sent - credited

    def forget(self, who: PeerId, founded: int) -> None:
        """Write off a peer that is gone for ever, founded with so much. Of itself: only a new epoch is left."""
        if who == self.me:
            self.status = "forgotten"
        elif who not in self.forgotten:
            self.forgotten = {**self.forgotten, who: founded}
            self._close(who)

    def _push(self, receivers: Sequence[Contact], share: int, payload: Payload, repairs: int) -> list[Envelope]:
        """Send `share` to each receiver, and no new mass to as many as `repairs` unsettled links beside them."""
        sent, unsettled, me = self.sent, self.unsettled, self.me
        others: Iterable[PeerId] = ()
        if unsettled and repairs:
            served = {contact[0] for contact in receivers}
            waiting = self.expects
            others = list(islice((who for who in unsettled if who not in served and who not in waiting), repairs))
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
        for peer in others:
            del unsettled[peer]
            unsettled[peer] = (sequence, 0, True)
            envelopes.append(Envelope(me, peer, 0, sequence, sent[peer], payload))
        return envelopes

    def _note(self, peer: PeerId, boot: int, push: tuple[int, int, bool], new: bool) -> None:
        """List `peer` as unsettled by `push`, in whatever state the link to it was."""
        restarted = boot > self.boots.get(peer, 1)
        before = self.unsettled.pop(peer, None) is not None or (restarted and not new)
        self.unsettled[peer] = (*push[:2], before)
        if restarted:
            self.boots = {**self.boots, peer: boot}
        if new:
            self._supersede(peer)

    def _is_current(self, peer: PeerId, boot: int) -> bool:
        """Say whether no later boot of `peer` is known; remember this one."""
        known = self.boots.get(peer, 1)
        if boot > known:
            self.boots = {**self.boots, peer: boot}
        return boot >= known

    def _close(self, peer: PeerId) -> None:
        self.closed |= {peer}
        self.unsettled.pop(peer, None)

    def _supersede(self, peer: PeerId) -> None:
        """Stop trying links to earlier epochs of `peer`: nobody will ever answer there."""
        prefix = name_of(peer) + "/"
        for other in [other for other in self.unsettled if other != peer and other.startswith(prefix)]:
            if name_of(other) == name_of(peer) and epoch_of(other) < epoch_of(peer):
                del self.unsettled[other]
