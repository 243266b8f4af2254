"""How many numbers of a model its messages have, and how that changes over a client's compute events."""

from dataclasses import dataclass

from pushcen.checks import check_count, check_number
from pushcen.codec import Schema, TopK, payload_size


@dataclass(frozen=True)
class SparsityOptions:
    """The share of a model's numbers that a message has: `first`, then evenly on to `last`, `over` so many events.

    Each client counts its own events. What is left out is the difference to the common start where that is small, and
    it is added to the client's next message. With 1 and 1 messages are dense.

    >>> [round(SparsityOptions(first=0.5, last=0.1, over=4).share(events), 3) for events in (0, 1, 4, 9)]
    [0.5, 0.4, 0.1, 0.1]
    """

    first: float = 1.0
    last: float | None = None
    """[as `first`]"""
    over: int = 20

    def __post_init__(self) -> None:
        check_number("first", self.first, 0.0001, 1)
        if self.last is not None:
            check_number("last", self.last, 0.0001, 1)
        check_count("over", self.over, 1)

    @property
    def given(self) -> tuple[str, float] | None:
        """The option by which something is left out; None if nothing is."""
        return next(((key, value) for key in ("first", "last") if (value := getattr(self, key)) not in (None, 1)), None)

    def share(self, events: int) -> float:
        """Return the share of all numbers that a message has after so many events."""
        first, last = self.first, self.first if self.last is None else self.last
        part = min(events / self.over, 1.0)
        return min(max((1 - part) * first + part * last, min(first, last)), max(first, last))  # whatever is rounded

    def message_bytes(self, schema: Schema, events: int) -> int:
        """Return how long a message is after so many events."""
        return payload_size(schema, TopK(self.share(events)))
