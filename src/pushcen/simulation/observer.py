"""What a simulation tells whoever watches: progress bars, trackers, loggers. Watching changes nothing."""

from typing import Any, Protocol


class Observer(Protocol):
    """Called in the thread that runs the simulation, in order of pseudo-time; what it raises ends the run."""

    def started(self, info: dict[str, Any]) -> None:
        """Hear of the world: clients, parameters, bytes of a message, horizon, and `time` (above 0 when resumed)."""

    def progress(self, now: dict[str, Any]) -> None:
        """Hear, a few times a second, of `time`, `horizon`, `events` (all), `steps` (compute events), `bytes_sent`."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Hear of a row of the metrics, just written."""

    def ended(self, summary: dict[str, Any]) -> None:
        """Hear of the summary; `summary["status"]` says whether the run is finished or was interrupted."""


class Quiet:
    """Watches, and says nothing. A class to inherit from, for who wants to hear of some things only."""

    def started(self, info: dict[str, Any]) -> None:
        """Hear of the world."""

    def progress(self, now: dict[str, Any]) -> None:
        """Hear how far it is."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Hear of a row of the metrics."""

    def ended(self, summary: dict[str, Any]) -> None:
        """Hear of the summary."""
