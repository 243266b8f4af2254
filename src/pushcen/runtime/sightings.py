"""What a running peer has seen of late, and when: for its status, and to tell why nothing comes."""

import time
from collections.abc import Callable

from pushcen.runtime.facts import FactLog

_MOST = 256  # names that are remembered, of each kind


class Seen(dict[str, float]):
    """When something was last seen of each of a few names; the ones seen longest ago are forgotten first.

    >>> seen = Seen(clock=iter([5.0, 6.0, 7.0]).__next__)
    >>> for name in ("ann", "bob", "ann"):
    ...     seen.note(name)
    >>> seen, seen.last
    ({'bob': 6.0, 'ann': 7.0}, 7.0)
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.last = 0.0
        self._clock = clock

    def note(self, name: str) -> None:
        """Note that something is seen now."""
        self.pop(name, None)
        self[name] = self.last = self._clock()
        if len(self) > _MOST:
            del self[next(iter(self))]

    def since(self, then: float) -> list[str]:
        """Return the names that something was seen of after some time."""
        return sorted(name for name, when in self.items() if when > then)


class Sightings:
    """Times are those of the wall clock; 0 is never."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.started = clock()
        self.facts = FactLog(clock)
        self.phase = "starting"  # then training, done, ended
        self.called, self.pushed, self.took = Seen(clock), Seen(clock), Seen(clock)
        """Who called here; whose push was news here; who took a push of this peer's as news."""
        self.silent: dict[str, str] = {}
        """Names and addresses that did not answer the last time, and why."""
        self.differs: dict[str, str] = {}
        """Who runs something else, and what."""
        self.trained = self.merged = self.failed = self.leaving = 0.0
        """When a compute event was finished, had something to merge, or failed; when it began to leave."""
        self.failure = ""
        self.seconds = 0.0
        """How long the last compute event took."""
        self.waits_for = ""
        """What the disk says, while a write waits for it."""

    def answered(self, name: str) -> None:
        """Note that somebody has answered."""
        self.silent.pop(name, None)
        self.differs.pop(name, None)

    def unanswered(self, name: str, why: str) -> None:
        """Note that somebody, by name or address, has not answered."""
        _keep(self.silent, name, why)

    def refused(self, name: str, difference: str) -> None:
        """Note that somebody runs something else."""
        _keep(self.differs, name, difference)

    def event(self, merged: int, seconds: float) -> None:
        """Note a compute event."""
        self.trained, self.seconds = self.clock(), seconds
        if merged:
            self.merged = self.trained

    def event_failed(self, why: str) -> None:
        """Note a compute event that came to nothing."""
        self.failed, self.failure = self.clock(), why
        self.facts.failed()


def _keep(book: dict[str, str], name: str, text: str) -> None:
    book.pop(name, None)
    book[name] = text
    if len(book) > _MOST:
        del book[next(iter(book))]
