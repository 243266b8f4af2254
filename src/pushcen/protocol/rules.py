"""A method's protocol side: what may wait (inbox), what it weighs (weights), who gets which part (outbox).

The rules of the methods themselves are at the end, each one line long.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pushcen.errors import OptionError
from pushcen.protocol.mailbox import Mailbox, Tops
from pushcen.protocol.mailboxes import ClosedMailbox, EveryMailbox, LatestMailbox
from pushcen.protocol.messages import UNIT, Envelope, Payload, PeerId, peer_id
from pushcen.protocol.newest import NewestMailbox
from pushcen.protocol.weights import ByMass, Equal, Fixed, Weights

Draw = Callable[[int], Sequence[str]]
"""Gives the names of so many receivers, drawn afresh; 0 asks for all there are."""


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
        if type(self.limit) is not int or self.limit < 0:
            raise OptionError(f"limit = {self.limit!r}: must be a whole number, 0 (no bound) or more")
        if self.mass not in ("keep", "drop"):
            raise OptionError(f"mass = {self.mass!r}: must be 'keep' or 'drop'")

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make an empty mailbox."""
        kind = NewestMailbox if self.newest_only else EveryMailbox
        return kind(credited, weights, self.limit, keep=self.mass == "keep")


@dataclass(frozen=True, slots=True)
class KeepLatest:
    """The newest of each neighbour, which stays; averaged at every `every`-th event.

    Before a neighbour is heard of, `start` stands for its model. At most `limit` models stand (0: no bound): those of
    who pushed last.
    """

    neighbours: tuple[str, ...] = ()
    start: Payload = None
    every: int = 1
    limit: int = 0

    def __post_init__(self) -> None:
        if type(self.every) is not int or self.every < 1:
            raise OptionError(f"every = {self.every!r}: must be a whole number, 1 or more")

    def open(self, me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox with the common start in every place."""
        start = [Envelope(peer_id(name, 0), me, 0, 0, 0, self.start) for name in self.neighbours]
        return LatestMailbox(credited, weights, start, self.every, self.limit)


@dataclass(frozen=True, slots=True)
class NoInbox:
    """Nothing waits: every envelope is let go by."""

    def open(self, _me: PeerId, credited: Tops, weights: Weights) -> Mailbox:
        """Make a mailbox that takes nothing in."""
        return ClosedMailbox(credited, weights)


class Outbox(Protocol):
    """Who gets which part of the model at a push."""

    def choose(self, draw: Draw, /) -> list[tuple[str, int]]:
        """Name receivers and the part each one gets (0: the whole model)."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole model goes to `receivers` peers; 0 means all that are offered."""

    receivers: int = 10

    def __post_init__(self) -> None:
        if type(self.receivers) is not int or self.receivers < 0:
            raise OptionError(f"receivers = {self.receivers!r}: must be a whole number, 0 (all) or more")

    def choose(self, draw: Draw) -> list[tuple[str, int]]:
        """Name receivers of the whole model."""
        return [(name, 0) for name in draw(self.receivers)]


@dataclass(frozen=True, slots=True)
class Fragments:
    """The model is cut into `parts`, and each part goes to `receivers` peers drawn afresh for it.

    >>> Fragments(parts=2, receivers=1).choose(lambda k: ["a", "b"][:k])
    [('a', 1), ('a', 2)]
    """

    parts: int = 5
    receivers: int = 2

    def __post_init__(self) -> None:
        for name, value in (("parts", self.parts), ("receivers", self.receivers)):
            if value < 1:
                raise OptionError(f"{name} = {value!r}: must be a whole number, 1 or more")

    def choose(self, draw: Draw) -> list[tuple[str, int]]:
        """Name the receivers of each part."""
        return [(name, part) for part in range(1, self.parts + 1) for name in draw(self.receivers)]


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nothing is sent."""

    def choose(self, _draw: Draw) -> list[tuple[str, int]]:
        """Name nobody."""
        return []


@dataclass(frozen=True, slots=True)
class Rules:
    """One method's three rules, and two about mass.

    `join_mass` is what who joins later brings along (0; or `UNIT`, the paper's line 1). Who has trained for
    `full_after` steps splits its mass evenly over its receivers and itself (line 8); who trained for fewer keeps more.
    """

    inbox: Inbox = field(default_factory=Buffer)
    weights: Weights = field(default_factory=ByMass)
    outbox: Outbox = field(default_factory=Whole)
    join_mass: int = 0
    full_after: int = 0

    def __post_init__(self) -> None:
        if type(self.full_after) is not int or self.full_after < 0:
            raise OptionError(f"full_after = {self.full_after!r}: must be a whole number, 0 (at once) or more")
        if self.join_mass not in (0, UNIT):
            raise OptionError(f"join_mass = {self.join_mass!r}: must be 0 or one UNIT ({UNIT})")
        if self.weights.moves_mass and not (isinstance(self.inbox, Buffer) and isinstance(self.outbox, Whole)):
            raise OptionError(f"weights = {self.weights}: mass needs a Buffer as inbox and Whole models as outbox")


def pushcen(
    inbox: Buffer = Buffer(),  # noqa: B008
    receivers: int = 10,
    join_mass: int = 0,
    full_after: int = 0,
) -> Rules:
    """PushCen-ADFL, and push-sum without compression."""
    return Rules(inbox, ByMass(), Whole(receivers), join_mass, full_after)


def async_dfedavg(inbox: Buffer = Buffer(), receivers: int = 10) -> Rules:  # noqa: B008
    """Async-DFedAvg: the same buffer, the plain mean."""
    return Rules(inbox, Equal(), Whole(receivers))


def swift(coefficients: Mapping[str, int], start: Payload, every: int = 1) -> Rules:
    """SWIFT, on a fixed graph: `coefficients` is this client's row of `swift_coefficients`."""
    return Rules(KeepLatest(tuple(coefficients), start, every), Fixed(coefficients), Whole(0))


def swift_random(receivers: int = 10, every: int = 1, limit: int = 128) -> Rules:
    """SWIFT as the paper compares it: random receivers, equal weights, and what `limit` others sent last stands."""
    return Rules(KeepLatest(every=every, limit=limit), Equal(), Whole(receivers))


def divshare(parts: int = 5, receivers: int = 2) -> Rules:
    """DivShare: fragments, each to receivers of its own; each coordinate's plain mean."""
    return Rules(Buffer(limit=0), Equal(), Fragments(parts, receivers))


def independent() -> Rules:
    """Training alone."""
    return Rules(NoInbox(), Equal(), Nobody())
