"""Which epoch of each name is the latest known. Links with earlier ones are over; in time they are dropped.

A link may be dropped only where something else refuses whatever still comes on it, and where nothing about it can
change any more. The latest epoch met of a name is a floor: envelopes of earlier ones are refused for good, since the
floor is saved with the ledger. And once a receiver has said farewell, or was forgotten, nothing comes back from it.
What was sent less what was credited on dropped links is kept in two sums for each name, which the audit reads: one for
epochs that left, one for those that were forgotten.
"""

from itertools import islice

from pushcen.protocol.ledger import NOBODY, NONE, Ledger
from pushcen.protocol.mailbox import SHIFT, Mailbox
from pushcen.protocol.messages import PeerId, epoch_of, name_of, sender_of

_FIRST = "/1"  # how the identity of a peer ends that never lost its state


class Epochs(Ledger):
    """Knows the latest epoch of every name there is a link with, and which links are over because of it.

    While nobody was met in another epoch than the first, there is nothing to remember. After that an index by name
    follows the links: both ends' new ones are the last in their dicts.
    """

    __slots__ = ("_ending", "_latest", "_parts", "_seen")

    def __init__(self, me: PeerId, founded: int) -> None:
        super().__init__(me, founded)
        self._latest: dict[str, int] | None = None
        self._seen = (0, 0)  # how many links the index has, to receivers and from senders
        self._parts: frozenset[int] = frozenset()  # the parts on links of the index
        self._ending: set[PeerId] = NOBODY  # identities that are over, whose links may be dropped

    def latest_epoch(self, name: str) -> int:
        """Return the latest epoch known of a name; 0 if there never was a link with it.

        >>> from pushcen.protocol import Peer
        >>> a, b = Peer.found("a"), Peer.found("b", epoch=7)
        >>> _ = a.begin(), a.finish([b.contact], payload=None)
        >>> a.latest_epoch("b"), a.latest_epoch("c")
        (7, 0)
        """
        if self._latest is None:
            self._index()
        else:
            self._follow()
        return (self._latest or NONE).get(name, 0)

    def owes(self, name: str) -> bool:
        """Return whether there is mass on the link to a peer that it may not have."""
        return f"{name}/{self.latest_epoch(name)}" in self.unsettled

    def is_over(self, peer: PeerId) -> bool:
        """Return whether a later epoch of a peer was met."""
        return self._latest is not None and epoch_of(peer) < self._latest.get(name_of(peer), 0)

    def _follow(self) -> None:
        """Take links that are new into account."""
        receivers, senders = len(self.sent), len(self.credited)
        to = islice(reversed(self.sent), receivers - self._seen[0])
        of = islice(reversed(self.credited), senders - self._seen[1])
        self._seen = (receivers, senders)
        if self._latest is not None:
            self._meet_all(list(to), list(of))
            return
        for peer in to:
            if peer[-2:] != _FIRST:
                self._index()
                return
        for link in of:
            if link[-2:] != _FIRST and not sender_of(link).endswith(_FIRST):
                self._index()
                return

    def _look_back(self) -> None:
        """Take into account what was taken over from a ledger, or from an earlier epoch of this peer."""
        peers = (*self.sent, *self.closed, *map(sender_of, self.credited))
        if self.past or not all(peer.endswith(_FIRST) for peer in peers):
            self._index()

    def _index(self) -> None:
        self._latest, self._seen = dict(self.past), (len(self.sent), len(self.credited))
        self._meet_all([*self.sent, *self.closed], list(self.credited))

    def _meet_all(self, peers: list[PeerId], links: list[str]) -> None:
        for peer in peers:
            self._meet(peer)
        for link in links:
            sender = sender_of(link)
            if link != sender:
                self._parts |= {int(link[len(sender) + 1 :])}
            self._meet(sender)

    def _spoke(self, peer: PeerId) -> None:
        """Take into account that a peer has answered, if there is a link with it, or with an earlier epoch of it."""
        if self._latest is None and peer.endswith(_FIRST):
            return
        if self.latest_epoch(name_of(peer)) or peer in self.sent:
            self._meet(peer)

    def _ended(self, peer: PeerId) -> None:
        """Take into account that a peer has left, or was forgotten."""
        if self._latest is None and not peer.endswith(_FIRST):
            self._index()
        if self._latest is not None:
            self._meet(peer)
            if self.is_over(peer):
                self._end(peer)
            elif not peer.endswith(_FIRST):  # earlier ones are over, even if none of them was met
                self._raise_floor(name_of(peer), epoch_of(peer))

    def _meet(self, peer: PeerId) -> None:
        """Note an identity. Of two epochs of a name the earlier is over: nobody will ever answer there."""
        latest, name, epoch = self._latest, name_of(peer), epoch_of(peer)
        assert latest is not None
        known = latest.setdefault(name, epoch)
        if epoch != known:
            latest[name] = max(known, epoch)
            self._raise_floor(name, latest[name])
            earlier = PeerId(f"{name}/{min(known, epoch)}")
            self.unsettled.pop(earlier, None)
            self._end(earlier)

    def _raise_floor(self, name: str, epoch: int) -> None:
        if self.past is NONE:
            self.past = {}
        self.past[name] = epoch

    def _end(self, peer: PeerId) -> None:
        if self._ending is NOBODY:
            self._ending = set()
        self._ending.add(peer)

    def _sweep(self, mailbox: Mailbox) -> None:
        """Drop links that are over, where nothing waits and nothing can change any more."""
        self._follow()
        ending, self._ending = self._ending, NOBODY
        for peer in ending:
            links = [peer, *(f"{peer}#{part}" for part in self._parts)]
            if any(map(mailbox.holds, links)):
                self._end(peer)  # until that is credited
            elif peer in self.closed or not (self.sent.get(peer, 0) or self.credited.get(peer, 0) >> SHIFT):
                self._drop(peer, links)
        self._seen = (len(self.sent), len(self.credited))

    def _drop(self, peer: PeerId, links: list[str]) -> None:
        mass = self.sent.pop(peer, 0) - sum(self.credited.pop(link, 0) >> SHIFT for link in links)
        if mass:
            if self.over is NONE:
                self.over = {}
            left, lost = self.over.get(name_of(peer), (0, 0))
            self.over[name_of(peer)] = (left, lost + mass) if peer in self.forgotten else (left + mass, lost)
        for known in (self.boots, self.confirmed):
            known.pop(peer, None)
        if peer not in self.forgotten:
            self.closed.discard(peer)
