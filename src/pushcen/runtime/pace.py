"""How long others are given to answer: longer while most of them take long, for then it is this peer that is late."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import monotonic

_RECENT = 15  # hellos that count
_TIMES = 3  # how much longer than half of these another may take


class Pace:
    """At least `least` seconds, at most `most`. A few neighbours that are slow or silent change nothing.

    >>> pace = Pace(least=2.0, most=30.0)
    >>> for _ in range(7):
    ...     pace.note(2.0)
    >>> pace.timeout
    2.0
    >>> pace.note(2.0)
    >>> pace.timeout
    6.0
    """

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, max(least, most)
        self._recent = deque([0.0] * _RECENT, _RECENT)

    def note(self, seconds: float) -> None:
        """Note how long a hello took, answered or in vain."""
        self._recent.append(seconds)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Note how long what is done within takes."""
        begun = monotonic()
        try:
            yield
        finally:
            self.note(monotonic() - begun)

    @property
    def timeout(self) -> float:
        """How many seconds an answer may take now."""
        return min(max(self._least, _TIMES * median(self._recent)), self._most)
