"""An exchange with an answer: one peer asks, the other answers at once, and both move. Nothing waits in a mailbox.

What asks is an ordinary push (part 0). What answers goes back as part `ANSWER`, under the sequence number of what it
answers: so each counts once, however often it arrives, and no peer has to remember what it has asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pushcen.checks import check_count, check_number
from pushcen.protocol.mailbox import DEAF, Mailbox, Receipt, Tops
from pushcen.protocol.messages import Contact, Envelope, Payload, PeerId
from pushcen.protocol.rules import Draw
from pushcen.protocol.simple_mailboxes import EveryMailbox
from pushcen.protocol.weights import Weights

ANSWER = 2**31
"""The part of an envelope that answers: no method cuts its model into so many."""


def answer_to(request: Envelope, payload: Payload) -> Envelope:
    """Return the envelope that answers one that asked.

    >>> answer_to(Envelope("a/1", "b/1", 0, 7, 0, "a's model"), "the difference")[:4]
    ('b/1', 'a/1', 2147483648, 7)
    """
    return Envelope(request.receiver, request.sender, ANSWER, request.sequence, 0, payload)


class ExchangeMailbox(EveryMailbox):
    """Holds nothing: whatever is news is answered, or moves the model, at once, and is credited at once.

    News is what is newer than all that came on its link before; there is one for questions and one for answers. So a
    copy is refused, after a restart too, and so is what was overtaken.
    """

    __slots__ = ()

    def put(self, envelope: Envelope) -> Receipt:
        """Note an envelope, if it is news."""
        if envelope.part not in (0, ANSWER):
            return DEAF
        receipt = super().put(envelope)
        self._waiting.clear()
        self._credited.update(self._tops)
        self._tops.clear()
        return receipt


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Inbox: nothing waits for a compute event; questions are answered at once, and answers taken at once."""

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox that holds nothing."""
        return ExchangeMailbox(credited, weights)


@dataclass(frozen=True, slots=True)
class Ask:
    """Outbox: `receivers` peers (0: all that are offered) are asked at each event, each with a probability `chance`.

    With d the difference between the model that asks and the one that answers, both move by a share of d towards each
    other: `shares` has it by the other's name, and it is `share` for all others. `momentum` and `mixing` are for
    methods that keep a second model: how far that moves, and how fast the two mix, as time goes on.

    >>> rule = Ask(receivers=0, shares={"b": 0.25})
    >>> rule.choose(lambda k: ["b", "c"]), rule.share_with("b"), rule.share_with("c")
    ([('b', 0), ('c', 0)], 0.25, 0.5)
    """

    receivers: int = 1
    chance: float = 1.0
    share: float = 0.5
    shares: Mapping[str, float] = field(default_factory=dict)
    momentum: float = 0.0
    mixing: float = 0.0

    def __post_init__(self) -> None:
        check_count("receivers", self.receivers)
        check_number("chance", self.chance, 0, 1)
        for share in (self.share, *self.shares.values()):
            check_number("share", share, 0, 1)
        check_number("momentum", self.momentum)
        check_number("mixing", self.mixing)

    def choose(self, draw: Draw) -> list[tuple[str, int]]:
        """Return who may be asked."""
        return [(name, 0) for name in draw(self.receivers)]

    def drawn(self, contacts: Sequence[Contact], rng: Random) -> list[Contact]:
        """Return those of them that are asked, each by a draw of its own."""
        return [contact for contact in contacts if self.chance == 1 or rng.random() < self.chance]

    def share_with(self, name: str) -> float:
        """Return the share of the difference to `name` by which both move."""
        return self.shares.get(name, self.share)
