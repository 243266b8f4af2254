"""What the event queue has asked for and the executor has not delivered: taken in strictly in the order of asking.

So whatever is counted or written depends on that order alone, and the first error is the same on any executor.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from pushcen.simulation.executors import Executor

Then = Callable[[list[Any], Any], None]


class Collector:
    """Hands each result to whoever asked, in order; bounds how far the queue runs ahead."""

    def __init__(self, runs: Executor, ahead: int) -> None:
        self._runs = runs
        self._ahead = ahead
        self._items: deque[tuple[Sequence[Any], Then, Any]] = deque()

    def add(self, tickets: Sequence[Any], then: Then, context: Any) -> None:
        """Call `then(facts of the tickets, context)` when all is there; wait now if there is too much."""
        self._items.append((tickets, then, context))
        if len(self._items) > self._ahead:
            self.collect(self._ahead // 2)

    def collect(self, leave: int = 0) -> None:
        """Take things in, until so many are left."""
        wait, items = self._runs.wait, self._items
        while len(items) > leave:
            tickets, then, context = items.popleft()
            then([wait(ticket) for ticket in tickets], context)

    def poll(self) -> None:
        """Take in what is there, and wait for nothing."""
        done = self._runs.is_done
        while self._items and all(done(ticket) for ticket in self._items[0][0]):
            self.collect(len(self._items) - 1)
