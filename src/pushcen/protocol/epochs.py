"""Which epoch of each name is the latest known: links with earlier ones are over."""

from itertools import islice

from pushcen.protocol.ledger import NONE, Ledger
from pushcen.protocol.messages import PeerId, epoch_of, name_of, sender_of

_FIRST = "/1"  # how the identity of a peer ends that never lost its state


class Epochs(Ledger):
    """Knows the latest epoch of every name there is a link with, and what is over for that.

    While nobody was met in another epoch than the first, there is nothing to remember. After that an index by name
    follows the links: both ends' new ones are the last in their dicts.
    """

    __slots__ = ("_latest", "_seen")

    def __init__(self, me: PeerId, founded: int) -> None:
        super().__init__(me, founded)
        self._latest: dict[str, int] | None = None
        self._seen = (0, 0)  # how many links the index has, to receivers and from senders

    def latest_epoch(self, name: str) -> int:
        """Say the latest epoch known of a name; 0 if there is no link with it.

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
        """Say whether there is mass on the link to a peer that it may not have."""
        return f"{name}/{self.latest_epoch(name)}" in self.unsettled

    def is_over(self, peer: PeerId) -> bool:
        """Say whether a later epoch of a peer was met."""
        return bool(self.past) and epoch_of(peer) < self.past.get(name_of(peer), 0)

    def _follow(self) -> None:
        """Take links that are new into account."""
        seen = (len(self.sent), len(self.credited))
        if seen == self._seen:
            return
        receivers, senders = (new - old for new, old in zip(seen, self._seen, strict=True))
        links = [*islice(reversed(self.sent), receivers), *map(sender_of, islice(reversed(self.credited), senders))]
        self._seen = seen
        if self._latest is not None:
            for peer in links:
                self._meet(peer)
        elif not all(peer.endswith(_FIRST) for peer in links):
            self._index()

    def _index(self) -> None:
        self._latest, self._seen = dict(self.past), (len(self.sent), len(self.credited))
        for peer in [*self.sent, *map(sender_of, self.credited)]:
            self._meet(peer)

    def _spoke(self, peer: PeerId) -> None:
        """Take into account that a peer has answered, if there is a link with it, or with an earlier epoch of it."""
        if self._latest is None and peer.endswith(_FIRST):
            return
        if self.latest_epoch(name_of(peer)) or peer in self.sent:
            self._meet(peer)

    def _meet(self, peer: PeerId) -> None:
        """Note an identity. Of two epochs of a name the earlier is over: nobody will ever answer there."""
        latest, name, epoch = self._latest, name_of(peer), epoch_of(peer)
        assert latest is not None
        known = latest.setdefault(name, epoch)
        if epoch != known:
            latest[name] = max(known, epoch)
            if self.past is NONE:
                self.past = {}
            self.past[name] = latest[name]
            self.unsettled.pop(PeerId(f"{name}/{min(known, epoch)}"), None)
