"""The receiver's end of all links: what has arrived and waits for the next compute event.

A link is named by `Envelope.link`. Its *top* is the sequence and total last accepted on it, kept as one integer,
`total << SHIFT | sequence`: half the memory, and half the cache misses, of a pair. `credited` has the tops that are
durable; what was accepted since is only here, and is gone after a crash, until the next envelope brings it again.
"""

from typing import Any, NamedTuple, Protocol

from pushcen.protocol.messages import Envelope, PeerId

Entry = tuple[int, Envelope]  # a weight in quanta, and the model it weighs
Tops = dict[str, int]

SHIFT = 64
LOW = 2**SHIFT - 1


class Receipt(NamedTuple):
    """What became of an envelope: whether it was news, and what the learner must fold because it had to make room.

    `reason` says why it was not: "old" (this or a newer one is here), "leaving" (this peer takes nothing in any more),
    "forgotten" (its sender was), "epoch" (its sender was met in a later one), or "deaf" (the method takes nothing in).
    """

    news: bool
    fold: Entry | None = None
    reason: str = ""


OLD, LEAVING, FORGOTTEN, EPOCH, DEAF = (
    Receipt(False, None, reason) for reason in ("old", "leaving", "forgotten", "epoch", "deaf")
)
TAKEN = Receipt(news=True)


class Event(NamedTuple):
    """What a compute event starts from. Weights are whole quanta, not normalised; models come in sender order.

    `folded` is what the models folded since the last event weigh together. `adopts` says that this is the first mass
    ever held: the own model weighs nothing, and the optimiser and the dictionary start anew.
    """

    own: int
    models: list[Entry]
    folded: int
    adopts: bool


class Mailbox(Protocol):
    """What every inbox rule offers."""

    folded: int  # what was folded since the last event began weighs together
    replaced: int  # how many envelopes a newer one of their sender has replaced, ever
    evicted: int  # how many had to make room

    @property
    def ready(self) -> bool:
        """Whether the next event may begin, or has to wait for somebody."""

    def put(self, envelope: Envelope, /) -> Receipt:
        """Take an envelope in, if it is news. What is refused changes nothing."""

    def take(self) -> list[Entry]:
        """Return what waits, in sender order, for an event that begins; it is gone from here."""

    def put_back(self) -> list[Entry]:
        """Undo `take`, as if it had not been; return what has to make room for what came since, to be folded."""

    def close(self) -> dict[str, int]:
        """End the event: credit what it took; return the mass that was thrown away before it, by rule."""

    def peek(self) -> list[Entry]:
        """Return what waits, with its mass, in order of arrival: not what is folded or taken. It stays here."""

    def mass(self) -> int:
        """Return how much mass waits here: not what is folded, or taken by the running event."""

    def holds(self, link: str, /) -> bool:
        """Return whether something was accepted on a link that is not credited yet."""

    def forget(self, peer: PeerId, /) -> None:
        """Drop the model that is kept of a peer that has left, or was forgotten."""

    def accepted(self, link: str) -> int:
        """Return the total last accepted on a link."""

    @property
    def running(self) -> Any:
        """What the running event took; None if there is none."""

    def save(self) -> list[Any]:
        """Return the state that `restore` takes: plain data and envelopes."""

    def restore(self, state: list[Any]) -> None:
        """Take over what `save` returned."""
