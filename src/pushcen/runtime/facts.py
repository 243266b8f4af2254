"""What has happened at a peer of late, as plain facts: bounded, in memory, for whoever may look at it (`views`).

No weights and no data are in them: names, times, sizes, mass, and the score on the peer's own test data.
"""

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

MOST = 2000
"""Facts that are kept; the oldest go first."""
MODELS = 256
"""Models of one compute event that a fact has at most."""
PARTS = 10_000
"""A model's share of an average is a number of these."""
_REFUSED = 256  # callers and reasons that are remembered
Fact = list[Any]


class FactLog:
    """The newest facts, numbered from 1 on. A fact is a list: its kind, its time, and what belongs to that kind.

    >>> facts = FactLog(clock=lambda: 5.0)
    >>> facts.pushed("bob", 100, "news")
    >>> facts.refused("eve", "rate")
    >>> facts.after(1)
    ([['r', 5.0, 'eve', 'rate']], 2)
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: deque[Fact] = deque(maxlen=MOST)
        self._refused: dict[tuple[str, str], float] = {}
        self.newest = 0

    def after(self, number: int, most: int = MOST) -> tuple[list[Fact], int]:
        """Return the facts after the one of this number, the oldest first, `most` at most; and the last one's number.

        A number that was never given is another process's: everything is new.
        """
        gone = self.newest - len(self._kept)
        begin = max(number, gone) if number <= self.newest else gone
        found = list(itertools.islice(self._kept, begin - gone, begin - gone + most))
        return found, begin + len(found)

    def trained(
        self, events: int, held: int, merged: Iterable[tuple[str, int, float]], score: float | None, loss: float
    ) -> None:
        """Note a compute event: the models that it merged, with sender, share and seconds waited; and how it went."""
        some = itertools.islice(merged, MODELS)
        models = [word for name, share, waited in some for word in (name, share, round(1000 * max(0.0, waited)))]
        self._add("m", events, str(held), models, _finite(score), _finite(loss))

    def failed(self) -> None:
        """Note that a compute event came to nothing; why is in this peer's own log."""
        self._add("f")

    def moved(self, name: str, share: float) -> None:
        """Note that this peer's model moved towards another's, by an exchange."""
        self._add("x", name, round(PARTS * share))

    def pushed(self, name: str, size: int, outcome: str) -> None:
        """Note what became of a push."""
        self._add("s", name, size, outcome)

    def arrived(self, name: str, size: int, *, news: bool) -> None:
        """Note that somebody's push came, and whether it was news."""
        self._add("a", name, size, news)

    def refused(self, name: str, reason: str) -> None:
        """Note that something was refused, of whom if that is known; once a second, or one caller would fill it all."""
        name, now = name.partition("/")[0], self._clock()
        if now - self._refused.get((name, reason), -math.inf) < 1:
            return
        if len(self._refused) > _REFUSED:
            self._refused.clear()
        self._refused[name, reason] = now
        self._add("r", name, reason)

    def warned(self, kind: str, level: str) -> None:
        """Note that something is wrong from now on, or "ok" again."""
        self._add("w", kind, level)

    def visited(self, what: str) -> None:
        """Note that this peer comes or goes."""
        self._add("p", what)

    def _add(self, kind: str, *more: Any) -> None:
        self.newest += 1
        self._kept.append([kind, round(self._clock(), 3), *more])


def shares(own: int, weights: Sequence[int]) -> list[int]:
    """Return what each of some models counts in an average with the own one, in `PARTS`.

    >>> shares(2, [1, 1])
    [2500, 2500]
    """
    total = own + sum(weights)
    return [weight * PARTS // total if total else 0 for weight in weights]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
