"""The inbox rule of methods with rounds: one envelope of each neighbour at a time, and nothing before all are there."""

from collections.abc import Iterable
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import DEAF, SHIFT, Entry, Receipt, Tops
from pushcen.protocol.messages import Envelope, check_id, name_of
from pushcen.protocol.simple_mailboxes import EveryMailbox
from pushcen.protocol.validation import number, sequence
from pushcen.protocol.weights import Weights


class RoundMailbox(EveryMailbox):
    """The envelopes of each neighbour in the order in which they were sent; an event takes the oldest of each.

    It may begin only when there is one of each; the first may at once, and takes none, since all start alike. What a
    neighbour sends in its next round, ahead of this peer, waits for that.
    """

    __slots__ = ("_neighbours", "_rounds")

    def __init__(self, credited: Tops, weights: Weights, neighbours: Iterable[str]) -> None:
        super().__init__(credited, weights)
        self._neighbours = frozenset(neighbours)
        self._rounds = 0  # that have begun

    @property
    def ready(self) -> bool:
        """Whether the next event may begin: there is an envelope of each neighbour."""
        return not self._rounds or self._neighbours <= {name_of(envelope.sender) for _, envelope in self._waiting}

    def put(self, envelope: Envelope) -> Receipt:
        """Take an envelope in, if it is news and a neighbour's."""
        return super().put(envelope) if name_of(check_id(envelope.sender)) in self._neighbours else DEAF

    def take(self) -> list[Entry]:
        """Return the oldest envelope of each neighbour, in sender order; what comes after it stays."""
        if not self.ready:
            raise ProtocolError("not all neighbours have sent what this round needs: wait until the peer is ready")
        waiting, tops = self._waiting, self._tops
        oldest: dict[str, Entry] = {}
        for entry in waiting if self._rounds else ():
            oldest.setdefault(entry[1].link, entry)
        self._waiting = list(oldest.values())
        self._tops = {link: one.total << SHIFT | one.sequence for link, (_, one) in oldest.items()}
        entries = super().take()
        self._waiting = [entry for entry in waiting if entry is not oldest.get(entry[1].link)]
        self._tops = {one.link: tops[one.link] for _, one in self._waiting}
        self._rounds += 1
        return entries

    def put_back(self) -> list[Entry]:
        """Undo `take`: nothing has to make room."""
        self._rounds -= 1
        return super().put_back()

    def save(self) -> list[Any]:
        """Return the state that `restore` takes: plain data and envelopes."""
        return [super().save(), self._rounds]

    def restore(self, state: list[Any]) -> None:
        """Take over what `save` returned."""
        rest, rounds = sequence(state, "mailbox", 2)
        super().restore(rest)
        self._rounds = number(rounds, "mailbox.rounds")
