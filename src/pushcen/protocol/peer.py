"""The state machine of one client: envelopes and answers in, weights and envelopes out."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import EPOCH, FORGOTTEN, LEAVING, SHIFT, Entry, Event, Receipt
from pushcen.protocol.messages import (
    LIMIT,
    UNIT,
    Answer,
    Contact,
    Envelope,
    Farewell,
    Payload,
    PeerId,
    check_id,
    epoch_of,
    name_of,
    peer_id,
)
from pushcen.protocol.rules import Rules
from pushcen.protocol.sender import Sender
from pushcen.protocol.validation import VERSION, as_protocol_error, check_receivers, malformed, number, sequence

_DEFAULT = Rules()
_new = tuple.__new__  # makes the named tuples of the hot path, at a third of the price of calling their class


class Peer(Sender):
    """One client's side of the protocol.

    >>> a, b = Peer.found("a"), Peer.found("b")
    >>> event = a.begin()
    >>> [envelope] = a.finish([b.contact], payload="a's model")
    >>> b.receive(envelope).news
    True
    >>> event = b.begin()
    >>> event.own / UNIT, [(weight / UNIT, envelope.payload) for weight, envelope in event.models]
    (1.0, [(0.5, "a's model")])

    `finish`, `serve`, `leave`, `hand_over`, `forget` and `restore` change what is durable: the caller commits
    `save()` before it sends an envelope or an answer.
    """

    __slots__ = ("_mailbox", "_mass", "_taken", "contact", "rules")

    def __init__(self, me: PeerId, founded: int, rules: Rules) -> None:
        super().__init__(me, founded)
        self.rules = rules
        self.contact = Contact(me, self.boot)
        self._mailbox = rules.inbox.open(me, self.credited, rules.weights)
        self._mass = rules.weights.moves_mass
        self._taken: int | None = None  # the mass that the running event took

    @classmethod
    def found(cls, name: str, rules: Rules = _DEFAULT, epoch: int = 1) -> Self:
        """Make a founder, which holds one UNIT; with rules that move no mass, none."""
        return cls(peer_id(name, epoch), UNIT if rules.weights.moves_mass else 0, rules)

    @classmethod
    def join(cls, name: str, rules: Rules = _DEFAULT, epoch: int = 1) -> Self:
        """Make a peer that joins later: it holds nothing (a UNIT, with `join_mass`) and adopts what it gets first."""
        return cls(peer_id(name, epoch), UNIT if rules.join_mass else 0, rules)

    @classmethod
    def restore(cls, state: dict[str, Any], rules: Rules = _DEFAULT) -> Self:
        """Start again from the last commit. This is a new boot, to be committed before anything is answered."""
        peer = cls._revived(state, rules)
        peer.boot += 1
        peer.contact = Contact(peer.me, peer.boot)
        return peer

    def snapshot(self) -> dict[str, Any]:
        """Return everything, mailbox and running event too, as the plain data and payload handles `resume` takes."""
        pushes = [[who, *push] for who, push in self.unsettled.items()]
        return self.save() | {"mailbox": self._mailbox.save(), "taken": self._taken, "pushes": pushes}

    @classmethod
    def resume(cls, snapshot: dict[str, Any], rules: Rules = _DEFAULT) -> Self:
        """Make the very peer that `snapshot` saw, in the same boot, as a simulation does that goes on."""
        peer = cls._revived(snapshot, rules)
        with as_protocol_error():
            peer._mailbox.restore(snapshot["mailbox"])
            taken = snapshot["taken"]
            peer._taken = None if taken is None else number(taken, "taken")
            pushes = [sequence(push, "pushes", 4) for push in sequence(snapshot["pushes"], "pushes")]
            if [push[0] for push in pushes] != list(peer.unsettled):
                raise ProtocolError("pushes: must be those of the unsettled links")
            for who, newest, added, before in pushes:
                number(newest, "pushes.sequence", 0, peer.sequence)
                peer.unsettled[who] = (newest, number(added, "pushes.added", 0, peer.sent[who]), before is True)
            if (taken is None) != (peer._mailbox.running is None):
                raise ProtocolError(f"taken = {taken!r:.80}: must be there if and only if an event runs")
        return peer

    def renewed(self, epoch: int) -> Self:
        """Make this peer anew in a later epoch, with no mass and no links."""
        peer = type(self)(peer_id(name_of(self.me), epoch), 0, self.rules)
        if epoch <= epoch_of(self.me):
            raise ProtocolError(f"epoch = {epoch}: must be later than that of {self.me}")
        peer.forgotten, peer.closed, peer.past = dict(self.forgotten), set(self.closed), dict(self.past)
        peer.most = self.most
        peer._look_back()
        return peer

    @property
    def ready(self) -> bool:
        """Whether the next event may begin, by the inbox rule, or waits for what a neighbour sends."""
        return self._mailbox.ready

    @property
    def waiting(self) -> int:
        """The mass that was accepted and is not held yet: in the mailbox, folded, or taken by the running event."""
        return self._mailbox.mass() + (self._taken or 0) + (self._mailbox.folded if self._mass else 0)

    @property
    def replaced(self) -> int:
        """How many envelopes in this mailbox were replaced by newer ones of their senders."""
        return self._mailbox.replaced

    @property
    def evicted(self) -> int:
        """How many envelopes in this mailbox had to make room."""
        return self._mailbox.evicted

    def peek(self) -> list[Entry]:
        """Return what waits for the next event, with its mass. It stays in the mailbox."""
        return self._mailbox.peek()

    def receive(self, envelope: Envelope) -> Receipt:
        """Take an envelope in, if it is news; at any time. Touches the mailbox only; a refusal changes nothing."""
        sender, receiver, part, sequence, total, _ = envelope
        if (
            receiver != self.me
            or sender == receiver
            or sender.__class__ is not str
            or sequence.__class__ is not int
            or total.__class__ is not int
            or not 0 < sequence <= LIMIT
            or total < 0
            or part.__class__ is not int
            or (part != 0 if self._mass else total != 0 or part < 0)
        ):
            raise malformed(envelope, self.me)
        if self.status != "open":
            return LEAVING
        if self.closed or self._latest is not None:
            if sender in self.forgotten:
                return FORGOTTEN
            if self.is_over(sender):
                return EPOCH
        return self._mailbox.put(envelope)

    def answer(self, asker: PeerId) -> Answer:
        """Return what is credited and accepted on the link from `asker`."""
        return Answer(self.me, self.boot, self.credited.get(asker, 0) >> SHIFT, self._mailbox.accepted(asker))

    def begin(self) -> Event:
        """Start a compute event: hand over what waits, with its weights. Nothing durable changes."""
        if self._taken is not None:
            raise ProtocolError(f"{self.me} has begun an event already: finish or abort it first")
        self._check("open")
        weights = self.rules.weights
        folded = self._mailbox.folded
        models = self._mailbox.take()
        own = weights.own(self.held)
        weight = folded + sum([weight for weight, _ in models])
        self._taken = weight if self._mass else 0
        return _new(Event, (own if own or weight else UNIT, models, folded, own == 0 and self._taken > 0))

    def abort(self) -> list[Entry]:
        """Undo `begin`, as if it had not been. Return what the learner must fold, since it had to make room."""
        self._running()
        self._taken = None
        return self._mailbox.put_back()

    def finish(
        self, receivers: Sequence[Contact], payload: Payload, parts: Sequence[int] = (), steps: int | None = None
    ) -> list[Envelope]:
        """End the event: credit what `begin` took, split the mass, and make the envelopes.

        `receivers` have answered a hello since the event began; `parts` says which part each one gets, if not the
        whole model; `steps`, how many the event trained, if that may be fewer than `rules.full_after`. Unsettled links
        are served beside them, with no new mass. Commit `save()`, then send.
        """
        taken = self._running()
        self._check("open")
        check_receivers(receivers, parts, self.me, self._mass)
        if steps is not None:
            number(steps, "steps")
        self._taken = None
        destroyed = self._mailbox.close()
        if destroyed:
            self.destroyed = dict(Counter(self.destroyed) + Counter(destroyed))
        self.events += 1
        self.held += taken
        if len(self.credited) != self._seen[1]:
            self._follow()
        envelopes = self._split(receivers, payload, parts, steps)
        if self._ending:
            self._sweep(self._mailbox)
        return envelopes

    def _split(
        self, receivers: Sequence[Contact], payload: Payload, parts: Sequence[int], steps: int | None
    ) -> list[Envelope]:
        if not self._mass:
            return self._plain(receivers, payload, parts or [0] * len(receivers))
        if self.closed or self._latest is not None or self.most is not None:
            receivers = self._takers(receivers)
        served = receivers[: max(self.held - 1, 0)]
        push = self._push if self.most is None else self._push_what_fits
        return push(served, self._share(self.held, len(served), steps), payload, max(1, len(receivers)))

    def _share(self, held: int, count: int, steps: int | None) -> int:
        """Return what each of so many receivers gets."""
        share, full = held // (count + 1), self.rules.full_after
        return max(share * steps // full, 1) if steps is not None and steps < full else share

    def gives(self, count: int, steps: int | None = None) -> int:
        """Return how much mass the event that runs will push to so many receivers, if nothing keeps it back.

        >>> peer = Peer.found("a")
        >>> event = peer.begin()
        >>> peer.gives(3) == 3 * UNIT // 4
        True
        """
        held = self.held + self._running()
        count = min(count, max(held - 1, 0))
        return count * self._share(held, count, steps) if self._mass else 0

    def leave(self) -> Farewell:
        """Take nothing in any more; return the farewell, which closes links to this peer. Commit, then publish it."""
        if self._taken is not None:
            raise ProtocolError(f"{self.me} is in an event: finish or abort it, then leave")
        self._check("open")
        self._mailbox = self.rules.inbox.open(self.me, self.credited, self.rules.weights)
        self.status = "leaving"
        return self.farewell()

    def farewell(self) -> Farewell:
        """Return the farewell of a leaving peer: what it has credited from whom."""
        self._check("leaving")
        return Farewell(self.me, {PeerId(link): top >> SHIFT for link, top in self.credited.items() if top >> SHIFT})

    def hand_over(self, heirs: Sequence[Contact], payload: Payload) -> list[Envelope]:
        """Push all that a leaving peer holds to its heirs, serve again what is owed; later, what `most` keeps back."""
        self._check("leaving")
        check_receivers(heirs, (), self.me, self._mass)
        if not self._mass:  # what an older ledger holds cannot be given to anybody
            return []
        heirs = self._takers(heirs)[: self.held]
        if not heirs:
            return self.serve(payload, len(self.sent))
        odd = self.held % len(heirs)
        envelopes = self._push_what_fits(heirs[:1], odd, payload, 0) if odd else []
        return envelopes + self._push_what_fits(heirs, self.held // len(heirs), payload, len(self.sent))

    @property
    def gone(self) -> bool:
        """Whether a leaving peer has given everything away, and may exit."""
        if self.status != "leaving" or not self._mass:
            return self.status == "leaving"
        owing = (peer for peer, total in self.sent.items() if self.confirmed.get(peer, 0) < total)
        return not self.held and all(peer in self.closed for peer in owing)

    @classmethod
    def _revived(cls, state: dict[str, Any], rules: Rules) -> Self:
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise ProtocolError(f"not a saved peer of version {VERSION}: {state!r:.80}")
        with as_protocol_error():
            peer = cls(check_id(state["peer"]), number(state["founded"], "founded"), rules)
            peer._load(state)
            peer._look_back()
        peer.contact = Contact(peer.me, peer.boot)
        return peer

    def _came_from(self, peer: PeerId) -> bool:
        return super()._came_from(peer) or self._mailbox.holds(peer)

    def _close(self, peer: PeerId) -> None:
        super()._close(peer)
        self._mailbox.forget(peer)

    def _plain(self, receivers: Sequence[Contact], payload: Payload, parts: Sequence[int]) -> list[Envelope]:
        self.sequence += 1
        draft = Envelope(self.me, self.me, 0, self.sequence, 0, payload)
        return [draft._replace(receiver=peer, part=part) for (peer, _), part in zip(receivers, parts, strict=True)]

    def _running(self) -> int:
        if self._taken is None:
            raise ProtocolError(f"{self.me} has begun no event")
        return self._taken

    def _check(self, status: str) -> None:
        if self.status != status:
            raise ProtocolError(f"{self.me} is {self.status}: this needs a peer that is {status}")
