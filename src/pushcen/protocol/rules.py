"""A method's protocol side: what may wait (inbox), what it weighs (weights), who gets which part (outbox).

`pushcen.methods` composes one of each to the rules of a method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pushcen.checks import check_choice, check_count, check_flag
from pushcen.errors import OptionError
from pushcen.protocol.mailbox import Mailbox, Tops
from pushcen.protocol.messages import Envelope, Payload, PeerId, peer_id
from pushcen.protocol.newest_mailbox import NewestMailbox
from pushcen.protocol.round_mailbox import RoundMailbox
from pushcen.protocol.simple_mailboxes import ClosedMailbox, EveryMailbox, LatestMailbox
from pushcen.protocol.weights import ByMass, Weights

Draw = Callable[[int], Sequence[str]]
"""Returns the names of so many receivers, drawn anew; 0 asks for all there are."""


class Inbox(Protocol):
    """Which envelopes wait for the next compute event."""

    def open(self, me: PeerId, credited: Tops, weights: Weights, /) -> Mailbox:
        """Make an empty mailbox."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """The newest of each sender (and part), or every envelope; at most `limit` (0: no bound).

    `mass = "keep"` adds a replaced entry's mass to its sender's newer model and folds what the bound evicts;
    `"drop"` destroys both, as the paper's Algorithm 5 does.
    """

    limit: int = 16
    mass: str = "keep"
    newest_only: bool = True

    def __post_init__(self) -> None:
        check_count("limit", self.limit)
        check_choice("mass", self.mass, ("keep", "drop"))

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make an empty mailbox."""
        kind = NewestMailbox if self.newest_only else EveryMailbox
        return kind(credited, weights, self.limit, keep=self.mass == "keep")


@dataclass(frozen=True, slots=True)
class KeepLatest:
    """The newest of each neighbour, which stays; averaged at every `every`-th event.

    Until a neighbour has pushed, `start` stands for its model. At most `limit` models are kept (0: no bound): those of
    the peers that pushed last.
    """

    neighbours: tuple[str, ...] = ()
    start: Payload = None
    every: int = 1
    limit: int = 0

    def __post_init__(self) -> None:
        check_count("every", self.every, 1)
        check_count("limit", self.limit)

    def open(self, me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox that has the common start of every neighbour."""
        start = [Envelope(peer_id(name, 0), me, 0, 0, 0, self.start) for name in self.neighbours]
        return LatestMailbox(credited, weights, start, self.every, self.limit)


@dataclass(frozen=True, slots=True)
class Rounds:
    """One envelope of each of `neighbours` at a time: an event waits until all of them are there (`Peer.ready`).

    So rounds are kept, by neighbours, on a fixed graph on which every message arrives, once and in order, and nobody
    goes. A neighbour is one round ahead at most.
    """

    neighbours: tuple[str, ...]

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox that is ready for the first round."""
        return RoundMailbox(credited, weights, self.neighbours)


@dataclass(frozen=True, slots=True)
class NoInbox:
    """Nothing waits: every envelope is ignored."""

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox that takes nothing in."""
        return ClosedMailbox(credited, weights)


class Outbox(Protocol):
    """Who gets which part of the model at a push."""

    def choose(self, draw: Draw, /) -> list[tuple[str, int]]:
        """Return the receivers, each with the part it gets (0: the whole model)."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole model goes to `receivers` peers; 0 means all that are offered."""

    receivers: int = 10

    def __post_init__(self) -> None:
        check_count("receivers", self.receivers)

    def choose(self, draw: Draw) -> list[tuple[str, int]]:
        """Return the receivers of the whole model."""
        return [(name, 0) for name in draw(self.receivers)]


@dataclass(frozen=True, slots=True)
class Fragments:
    """The model is cut into `parts`, and each part goes to `receivers` peers drawn for it alone.

    >>> Fragments(parts=2, receivers=1).choose(lambda k: ["a", "b"][:k])
    [('a', 1), ('a', 2)]
    """

    parts: int = 5
    receivers: int = 2

    def __post_init__(self) -> None:
        check_count("parts", self.parts, 1)
        check_count("receivers", self.receivers, 1)

    def choose(self, draw: Draw) -> list[tuple[str, int]]:
        """Return the receivers of each part."""
        return [(name, part) for part in range(1, self.parts + 1) for name in draw(self.receivers)]


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nothing is sent."""

    def choose(self, _draw: Draw) -> list[tuple[str, int]]:
        """Return an empty list."""
        return []


@dataclass(frozen=True, slots=True)
class Rules:
    """One method's three rules, and two options about mass.

    With `join_mass` a peer that joins later brings a unit of mass along (the paper's line 1). A peer that has trained
    for `full_after` steps splits its mass evenly over its receivers and itself (line 8); after fewer it keeps more.

    >>> Rules(Buffer(limit=4), ByMass(), Whole(receivers=3)).outbox.receivers
    3
    """

    inbox: Inbox = field(default_factory=Buffer)
    weights: Weights = field(default_factory=ByMass)
    outbox: Outbox = field(default_factory=Whole)
    join_mass: bool = False
    full_after: int = 0

    def __post_init__(self) -> None:
        check_flag("join_mass", self.join_mass)
        check_count("full_after", self.full_after)
        if self.weights.moves_mass and not (isinstance(self.inbox, Buffer) and isinstance(self.outbox, Whole)):
            raise OptionError(f"weights = {self.weights}: mass needs a Buffer as inbox and Whole models as outbox")
