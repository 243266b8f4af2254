"""What a simulation tells whoever watches: progress bars, trackers, loggers. Watching changes nothing."""

from typing import Any, Protocol


class Observer(Protocol):
    """Called in the thread that runs the simulation, in order of pseudo-time; what it raises ends the run."""

    def started(self, info: dict[str, Any]) -> None:
        """Note the world: clients, parameters, bytes of a message, horizon, and `time` (above 0 when resumed)."""

    def progress(self, now: dict[str, Any]) -> None:
        """Note, a few times a second, `time`, `horizon`, `events` (all), `steps` (compute events), `bytes_sent`."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Note a row of the metrics, just written."""

    def ended(self, summary: dict[str, Any]) -> None:
        """Note the summary; `summary["status"]` says whether the run is finished or was interrupted."""


class Quiet:
    """Does nothing: a class to inherit from, for observers that need only some of the calls."""

    def started(self, info: dict[str, Any]) -> None:
        """Do nothing."""

    def progress(self, now: dict[str, Any]) -> None:
        """Do nothing."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Do nothing."""

    def ended(self, summary: dict[str, Any]) -> None:
        """Do nothing."""
