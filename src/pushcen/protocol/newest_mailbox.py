"""The inbox rule of PushCen and Async-DFedAvg: the newest envelope of each link, and a bound."""

from typing import Any, NamedTuple

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import LOW, OLD, SHIFT, TAKEN, Entry, Receipt, Tops
from pushcen.protocol.messages import Envelope, PeerId, check_id, name_of
from pushcen.protocol.validation import envelopes, mapping, number, packed_top, sequence, text
from pushcen.protocol.validation import link as link_name
from pushcen.protocol.weights import Weights

_new = tuple.__new__  # makes a named tuple at a third of the price of calling its class
_NONE: Tops = {}  # shared by all mailboxes: what is mostly empty is replaced, never changed
_NEWER: dict[str, Envelope] = {}


class _Event(NamedTuple):
    """What the running event took."""

    waiting: dict[str, Envelope]
    counted: Tops
    folded: int
    destroyed: dict[str, int]


class NewestMailbox:
    """The newest envelope of each link, in order of arrival, at most `limit` of them (0: no bound).

    What is replaced needs no care: its mass is part of the newer envelope's running total. What the bound evicts is
    handed out to be folded. Without `keep` both are destroyed: the paper's Algorithm 5.
    """

    __slots__ = (
        "_counted",
        "_credited",
        "_destroyed",
        "_event",
        "_keep",
        "_limit",
        "_moved",
        "_waiting",
        "_weights",
        "evicted",
        "folded",
        "replaced",
    )
    ready = True

    def __init__(self, credited: Tops, weights: Weights, limit: int = 0, keep: bool = True) -> None:
        self._credited = credited
        self._weights = weights
        self._limit = limit
        self._keep = keep
        self._waiting: dict[str, Envelope] = {}
        self._counted = _NONE  # where mass was folded, destroyed or only served again since the last event began
        self._moved = _NEWER  # on links of which the running event took an entry: what serves them again, with no mass
        self._event: _Event | None = None
        self._destroyed = _NONE
        self.folded = self.replaced = self.evicted = 0

    def put(self, envelope: Envelope) -> Receipt:
        """Take an envelope in, if it is news. What is refused changes nothing.

        >>> from pushcen.protocol.weights import ByMass
        >>> box = NewestMailbox({}, ByMass(), limit=1)
        >>> old, new = Envelope("a/1", "me/1", 0, 1, 5, "old"), Envelope("a/1", "me/1", 0, 2, 8, "new")
        >>> box.put(old).news, box.put(new).news
        (True, True)
        >>> box.put(old).news  # an old one
        False
        >>> weight, evicted = box.put(Envelope("b/1", "me/1", 0, 1, 1, "other")).fold
        >>> weight, evicted.payload
        (8, 'new')
        """
        link = envelope.link if envelope[2] else envelope[0]
        sequence, total = envelope[3], envelope[4]
        waiting = self._waiting
        before = waiting.get(link)
        if before is not None:
            top_sequence, top_total = before[3], before[4]
        else:
            top = self._credited.get(link, 0) if self._event is None and not self._counted else self._base(link)
            if not top:  # the link's first
                check_id(envelope[0])
            top_sequence, top_total = top & LOW, top >> SHIFT
        if sequence <= top_sequence:
            return OLD
        if total <= top_total:
            if total < top_total:
                raise ProtocolError(
                    f"total = {total} on {envelope.sender}'s envelope {sequence}: was {top_total} before"
                )
            if self._weights.moves_mass and (before is None or not self._keep):
                self._move_top(link, envelope)
                return TAKEN
        if before is None and len(waiting) != self._limit:  # the hot path of `_store`
            waiting[link] = envelope
            return TAKEN
        return self._store(link, envelope)

    def take(self) -> list[Entry]:
        """Return what waits, in sender order, for an event that begins; it is gone from here."""
        waiting, counted = self._waiting, self._counted
        links = sorted(waiting)
        if not self._weights.moves_mass:
            of = self._weights.of
            entries = [(of(0, name_of(waiting[link].sender)), waiting[link]) for link in links]
        elif counted:
            entries = [(waiting[link].total - (self._base(link) >> SHIFT), waiting[link]) for link in links]
        else:
            base = self._credited.get
            found = map(waiting.__getitem__, links)
            entries = [(one[4] - (base(link, 0) >> SHIFT), one) for link, one in zip(links, found, strict=True)]
        self._event = _new(_Event, (waiting, counted, self.folded, self._destroyed))
        self._waiting, self._counted, self.folded, self._destroyed = {}, _NONE, 0, _NONE
        return entries

    def put_back(self) -> list[Entry]:
        """Undo `take`, as if it had not been; return what has to make room for what came since, to be folded."""
        event, newer, counted = self._running(), self._waiting, self._counted
        self._event = None
        self.folded += event.folded
        for rule, share in event.destroyed.items():
            self._destroy(rule, share)
        self._waiting, self._counted = event.waiting, event.counted
        moved, self._moved = self._moved, _NEWER
        for link, envelope in moved.items():
            self._renew(link, envelope)
            if counted[link] == _top(envelope):  # no mass of the link was folded or destroyed meanwhile
                del counted[link]
        receipts = [self._drop(link, "replaced") for link in counted if link in event.waiting]
        self._counted = self._counted | counted
        receipts += [self._store(link, envelope) for link, envelope in newer.items()]
        return [receipt.fold for receipt in receipts if receipt.fold]

    def close(self) -> dict[str, int]:
        """End the event: credit what it took; return the mass that was thrown away before it, by rule."""
        event, credited = self._running(), self._credited
        if event.counted:
            credited.update(event.counted)
        for link, envelope in event.waiting.items():
            credited[link] = envelope[4] << SHIFT | envelope[3]
        self._event, self._moved = None, _NEWER
        return event.destroyed

    def peek(self) -> list[Entry]:
        """Return what waits, with its mass, in order of arrival: not what is folded or taken. It stays here."""
        return [(envelope.total - (self._base(link) >> SHIFT), envelope) for link, envelope in self._waiting.items()]

    def mass(self) -> int:
        """Return how much mass waits here: not what is folded, or taken by the running event."""
        return sum(envelope.total - (self._base(link) >> SHIFT) for link, envelope in self._waiting.items())

    def holds(self, link: str) -> bool:
        """Return whether something was accepted on a link that is not credited yet."""
        event = self._event
        taken = event is not None and (link in event.waiting or link in event.counted)
        return taken or link in self._waiting or link in self._counted

    def forget(self, peer: PeerId) -> None:
        """Keep what was accepted: its mass is counted on."""

    def accepted(self, link: str) -> int:
        """Return the total last accepted on a link."""
        waits = self._waiting.get(link)
        return waits.total if waits else self._base(link) >> SHIFT

    @property
    def running(self) -> Any:
        """What the running event took; None if there is none."""
        return self._event

    def save(self) -> list[Any]:
        """Return the state that `restore` takes: plain data and envelopes."""
        here = _Event(self._waiting, self._counted, self.folded, self._destroyed)
        event = self._event and _plain(self._event)
        return [_plain(here), event, self.replaced, self.evicted, list(self._moved.values())]

    def restore(self, state: list[Any]) -> None:
        """Take over what `save` returned."""
        here, event, replaced, evicted, *moved = sequence(state, "mailbox")
        self._moved = envelopes(moved[0], "mailbox.moved") if moved else _NEWER  # earlier checkpoints have none
        self._event = _revive(event) if event else None
        self._waiting, self._counted, self.folded, self._destroyed = _revive(here)
        self.replaced, self.evicted = number(replaced, "mailbox.replaced"), number(evicted, "mailbox.evicted")
        below = [(envelope, self._base(link)) for link, envelope in self._waiting.items()]
        taken, counted = (self._event.waiting, self._event.counted) if self._event else (_NEWER, _NONE)
        below += [(envelope, counted.get(link) or self._credited.get(link, 0)) for link, envelope in taken.items()]
        if any(envelope.total < base >> SHIFT for envelope, base in below) or not self._moved.keys() <= taken.keys():
            raise ProtocolError("mailbox: has less on a link than is credited, or serves a link again that has nothing")
        if any(_top(envelope) > self._counted.get(link, 0) for link, envelope in self._moved.items()):
            raise ProtocolError("mailbox.moved: has an envelope that was not counted")

    def _base(self, link: str) -> int:
        """Return the top below what waits: up to there, the link's mass is counted elsewhere."""
        top = self._counted.get(link)
        if not top and self._event:
            envelope = self._event.waiting.get(link)
            top = _top(envelope) if envelope else self._event.counted.get(link)
        return top or self._credited.get(link, 0)

    def _move_top(self, link: str, envelope: Envelope) -> None:
        """Note an envelope that brings no mass, since its link was served again: nothing to weigh."""
        if link in self._waiting:
            self._renew(link, envelope)
            return
        if self._event and link in self._event.waiting:
            before = self._moved.get(link)
            if self._counted.get(link) == (_top(before) if before else None):  # nothing was folded or destroyed
                if self._moved is _NEWER:
                    self._moved = {}
                self._moved[link] = envelope
        self._count(link, _top(envelope))

    def _renew(self, link: str, envelope: Envelope) -> None:
        """Renew the entry that waits by an envelope that brings no mass: its model, or with `drop` only its top."""
        before = self._waiting[link]
        self._waiting[link] = envelope if self._keep else before._replace(sequence=envelope.sequence)
        self.replaced += self._keep

    def _store(self, link: str, envelope: Envelope) -> Receipt:
        waiting = self._waiting
        if link in waiting:
            self.replaced += 1
            if not self._keep:
                self._drop(link, "replaced")
            else:
                del waiting[link]
        waiting[link] = envelope
        if self._limit and len(waiting) > self._limit:
            self.evicted += 1
            return self._drop(next(iter(waiting)), "evicted")
        return TAKEN

    def _drop(self, link: str, rule: str) -> Receipt:
        """Remove what waits on a link: it is folded, or destroyed."""
        base, envelope = self._base(link), self._waiting.pop(link)
        share = envelope.total - (base >> SHIFT)
        self._count(link, _top(envelope))
        if not self._keep:
            self._destroy(rule, share)
            return TAKEN
        weight = self._weights.of(share, name_of(envelope.sender))
        self.folded += weight
        return Receipt(True, (weight, envelope))

    def _count(self, link: str, top: int) -> None:
        if self._counted is _NONE:
            self._counted = {}
        self._counted[link] = top

    def _destroy(self, rule: str, share: int) -> None:
        self._destroyed = {**self._destroyed, rule: self._destroyed.get(rule, 0) + share}

    def _running(self) -> _Event:
        if self._event is None:
            raise ProtocolError("no event has begun")
        return self._event


def _plain(event: _Event) -> list[Any]:
    return [list(event.waiting.values()), dict(event.counted), event.folded, dict(event.destroyed)]


def _revive(state: list[Any]) -> _Event:
    waiting, counted, folded, destroyed = sequence(state, "mailbox", 4)
    return _Event(
        envelopes(waiting, "mailbox.waiting"),
        mapping(counted, "mailbox.counted", link_name, packed_top),
        number(folded, "mailbox.folded"),
        mapping(destroyed, "mailbox.destroyed", text),
    )


def _top(envelope: Envelope) -> int:
    return envelope[4] << SHIFT | envelope[3]
