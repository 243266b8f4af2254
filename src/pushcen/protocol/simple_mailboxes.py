"""The simpler inbox rules: every envelope on its own, the newest one kept until it is renewed, nothing at all."""

from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import DEAF, EPOCH, LOW, OLD, SHIFT, TAKEN, Entry, Receipt, Tops
from pushcen.protocol.messages import Envelope, PeerId, check_id, epoch_of, name_of
from pushcen.protocol.validation import envelope, envelopes, link, mapping, number, packed_top, sequence
from pushcen.protocol.weights import Weights


class EveryMailbox:
    """Every envelope on its own, as in textbook push-sum; at most `limit` of them (0: no bound)."""

    __slots__ = (
        "_credited",
        "_destroyed",
        "_event",
        "_keep",
        "_limit",
        "_tops",
        "_waiting",
        "_weights",
        "evicted",
        "folded",
        "replaced",
    )

    def __init__(self, credited: Tops, weights: Weights, limit: int = 0, keep: bool = True) -> None:
        self._credited = credited
        self._weights = weights
        self._limit = limit
        self._keep = keep
        self._waiting: list[Entry] = []  # with shares, not weights
        self._tops: Tops = {}
        self._event: tuple[list[Entry], Tops, int, int] | None = None
        self._destroyed = 0
        self.folded = self.replaced = self.evicted = 0

    @property
    def ready(self) -> bool:
        """Whether the next event may begin: always."""
        return True

    def put(self, envelope: Envelope) -> Receipt:
        """Take an envelope in, if it is news, beside what its sender sent before."""
        link, sequence, total = envelope.link, envelope.sequence, envelope.total
        top = self._top(link)
        if not top:  # the link's first
            check_id(envelope.sender)
        if sequence <= top & LOW:
            return OLD
        share = total - (top >> SHIFT)
        if share < 0:
            raise ProtocolError(
                f"total = {total} on {envelope.sender}'s envelope {sequence}: was {top >> SHIFT} before"
            )
        self._tops[link] = total << SHIFT | sequence
        if not share and self._weights.moves_mass:
            return TAKEN
        self._waiting.append((share, envelope))
        fold = self._evict()
        return Receipt(True, fold) if fold else TAKEN

    def take(self) -> list[Entry]:
        """Return what waits, in sender order, for an event that begins; it is gone from here."""
        self._event = (self._waiting, self._tops, self.folded, self._destroyed)
        entries = [self._weigh(entry) for entry in self._waiting]
        self._waiting, self._tops, self.folded, self._destroyed = [], {}, 0, 0
        return sorted(entries, key=lambda entry: (entry[1].sender, entry[1].part, entry[1].sequence))

    def put_back(self) -> list[Entry]:
        """Undo `take`, as if it had not been; return what has to make room for what came since, to be folded."""
        entries, tops, folded, destroyed = self._running()
        self._event = None
        self._waiting = entries + self._waiting
        self._tops = tops | self._tops
        self.folded += folded
        self._destroyed += destroyed
        folds = [self._evict() for _ in range(len(self._waiting))]
        return [fold for fold in folds if fold]

    def close(self) -> dict[str, int]:
        """End the event: credit what it took; return the mass that was thrown away before it, by rule."""
        _, tops, _, destroyed = self._running()
        self._event = None
        self._credited.update(tops)
        return {"evicted": destroyed} if destroyed else {}

    def peek(self) -> list[Entry]:
        """Return what waits, with its mass, in order of arrival. It stays here."""
        return list(self._waiting)

    def mass(self) -> int:
        """Return how much mass waits here."""
        return sum(share for share, _ in self._waiting)

    @property
    def running(self) -> Any:
        """What the running event took; None if there is none."""
        return self._event

    def holds(self, link: str) -> bool:
        """Return whether something was accepted on a link that is not credited yet."""
        return link in self._tops or (self._event is not None and link in self._event[1])

    def forget(self, peer: PeerId) -> None:
        """Keep what was accepted: its mass is counted on."""

    def accepted(self, link: str) -> int:
        """Return the total last accepted on a link."""
        return self._top(link) >> SHIFT

    def save(self) -> list[Any]:
        """Return the state that `restore` takes: plain data and envelopes."""
        counts = [self.folded, self._destroyed, self.replaced, self.evicted]
        return [list(self._waiting), dict(self._tops), counts, self._event]

    def restore(self, state: list[Any]) -> None:
        """Take over what `save` returned."""
        waiting, tops, counts, event = sequence(state, "mailbox", 4)
        counts = [number(value, "mailbox.counts") for value in sequence(counts, "mailbox.counts", 4)]
        self._waiting, self._tops = _revive(waiting), mapping(tops, "mailbox.tops", link, packed_top)
        self.folded, self._destroyed, self.replaced, self.evicted = counts
        self._event = None
        if event:
            taken, credits, folded, destroyed = sequence(event, "mailbox.event", 4)
            sums = number(folded, "mailbox.folded"), number(destroyed, "mailbox.destroyed")
            self._event = (_revive(taken), mapping(credits, "mailbox.event.tops", link, packed_top), *sums)

    def _top(self, link: str) -> int:
        return self._tops.get(link) or (self._event and self._event[1].get(link)) or self._credited.get(link, 0)

    def _weigh(self, entry: Entry) -> Entry:
        share, envelope = entry
        return self._weights.of(share, name_of(envelope.sender)), envelope

    def _evict(self) -> Entry | None:
        if not self._limit or len(self._waiting) <= self._limit:
            return None
        entry = self._waiting.pop(0)
        self.evicted += 1
        if not self._keep:
            self._destroyed += entry[0]
            return None
        fold = self._weigh(entry)
        self.folded += fold[0]
        return fold

    def _running(self) -> tuple[list[Entry], Tops, int, int]:
        if self._event is None:
            raise ProtocolError("no event has begun")
        return self._event


class LatestMailbox(EveryMailbox):
    """The newest envelope of each neighbour, which stays and is used again until a newer one comes.

    Every `every`-th event gets what is kept; the others average nothing. With a `limit`, the model that was not renewed
    for longest makes room. None is kept of a peer that has left or was forgotten, nor of an epoch beside a later one.
    """

    __slots__ = ("_every", "_newest", "_shown", "_standing")

    def __init__(self, credited: Tops, weights: Weights, start: list[Envelope], every: int = 1, limit: int = 0) -> None:
        super().__init__(credited, weights)
        self._standing = limit
        self._newest = {name_of(envelope.sender): envelope for envelope in start}
        self._every = every
        self._shown = 0

    def put(self, envelope: Envelope) -> Receipt:
        """Keep an envelope, if it is news, in place of its sender's last one."""
        name = name_of(check_id(envelope.sender))
        stands = self._newest.get(name)
        if stands is not None and epoch_of(envelope.sender) < epoch_of(stands.sender):
            return EPOCH
        receipt = super().put(envelope)
        if receipt.news:
            self._waiting.clear()
            self.replaced += self._newest.pop(name, None) is not None
            self._newest[name] = envelope
            if self._standing and len(self._newest) > self._standing:
                del self._newest[next(iter(self._newest))]
                self.evicted += 1
        return receipt

    def forget(self, peer: PeerId) -> None:
        """Drop the model that is kept of a peer that has left, or was forgotten."""
        stands = self._newest.get(name_of(peer))
        if stands is not None and epoch_of(stands.sender) <= epoch_of(peer):
            del self._newest[name_of(peer)]

    def take(self) -> list[Entry]:
        """Return what is kept, in sender order; it stays here."""
        super().take()
        self._shown += 1
        if self._shown % self._every:
            return []
        return [self._weigh((0, self._newest[name])) for name in sorted(self._newest)]

    def put_back(self) -> list[Entry]:
        """Undo `take`: nothing has to make room."""
        self._shown -= 1
        return super().put_back()

    def save(self) -> list[Any]:
        """Return the state that `restore` takes: plain data and envelopes."""
        return [super().save(), list(self._newest.values()), self._shown]

    def restore(self, state: list[Any]) -> None:
        """Take over what `save` returned."""
        rest, newest, shown = sequence(state, "mailbox", 3)
        super().restore(rest)
        self._newest = {name_of(one.sender): one for one in envelopes(newest, "mailbox.newest").values()}
        self._shown = number(shown, "mailbox.shown")


class ClosedMailbox(EveryMailbox):
    """Takes nothing in."""

    __slots__ = ()

    def put(self, _envelope: Envelope) -> Receipt:
        """Ignore the envelope."""
        return DEAF


def _revive(entries: Any) -> list[Entry]:
    pairs = [sequence(entry, "mailbox.waiting", 2) for entry in sequence(entries, "mailbox.waiting")]
    return [(number(share, "mailbox.share"), envelope(fields, "mailbox.waiting")) for share, fields in pairs]
