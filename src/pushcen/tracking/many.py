"""Several observers as one."""

from collections.abc import Sequence
from typing import Any

from pushcen.simulation import Observer


class Many:
    """Tells all of its observers, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def started(self, info: dict[str, Any]) -> None:
        """Hear of the world."""
        for observer in self._observers:
            observer.started(info)

    def progress(self, now: dict[str, Any]) -> None:
        """Hear how far it is."""
        for observer in self._observers:
            observer.progress(now)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Hear of a row of the metrics."""
        for observer in self._observers:
            observer.evaluated(row)

    def ended(self, summary: dict[str, Any]) -> None:
        """Hear of the summary."""
        for observer in self._observers:
            observer.ended(summary)
