"""Trackers by name, several observers as one, and what a tracker takes of a row: numbers by name, and a step."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pushcen.checks import is_finite
from pushcen.errors import OptionError
from pushcen.locate import locate
from pushcen.simulation import Observer

TRACKERS = {
    "tensorboard": ("pushcen.tracking.tensorboard:TensorBoard", "tensorboard"),
    "mlflow": ("pushcen.tracking.mlflow:MLflow", "mlflow"),
    "wandb": ("pushcen.tracking.wandb:WandB", "wandb"),
}
"""Where each is, and which package it needs."""


def trackers(names: Iterable[str], folder: Path, config: Mapping[str, Any]) -> list[Observer]:
    """Return trackers for a run: by name, or by `module:Class` for one of your own.

    >>> trackers(["tensorbord"], Path("."), {})
    Traceback (most recent call last):
    pushcen.errors.OptionError: track = 'tensorbord': must be one of tensorboard, mlflow, wandb, or module:Class
    """
    return [_tracker(name, folder, config) for name in names]


def _tracker(name: str, folder: Path, config: Mapping[str, Any]) -> Observer:
    where, package = TRACKERS.get(name, (name, ""))
    if ":" not in where:
        raise OptionError(f"track = {name!r}: must be one of {', '.join(TRACKERS)}, or module:Class")
    try:
        made = locate(where, "track")(folder, config)
    except (ImportError, OptionError) as error:
        if not package:
            raise
        why = str(error).rpartition(": ")[2]
        raise OptionError(f"track = {name!r}: {why}; pip install 'pushcen[{package}]' brings it") from None
    missing = [part for part in ("started", "progress", "evaluated", "ended") if not hasattr(made, part)]
    if missing:
        raise OptionError(f"track = {name!r}: is no observer: it has no {', '.join(missing)}")
    return made  # type: ignore[no-any-return]


class Many:
    """An observer that passes everything on to others, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def started(self, info: dict[str, Any]) -> None:
        """Pass the world on."""
        for observer in self._observers:
            observer.started(info)

    def progress(self, now: dict[str, Any]) -> None:
        """Pass on how far the run is."""
        for observer in self._observers:
            observer.progress(now)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Pass on a row of the metrics."""
        for observer in self._observers:
            observer.evaluated(row)

    def ended(self, summary: dict[str, Any]) -> None:
        """Pass the summary on."""
        for observer in self._observers:
            observer.ended(summary)


def scalars(row: Mapping[str, Any], at: str = "") -> dict[str, float]:
    """Return the finite numbers of a row, those of inner tables as `table/name`; lists are left out.

    >>> scalars({"time": 2.0, "loss": None, "clients": [0.5, 0.7], "meters": {"mass": 1}})
    {'time': 2.0, 'meters/mass': 1.0}
    """
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= scalars(value, f"{at}{name}/")
        elif is_finite(value):
            found[at + name] = float(value)
    return found


def step(row: Mapping[str, Any]) -> int:
    """Return a row's pseudo-time in thousandths: trackers want whole numbers, and methods are compared by time.

    >>> step({"time": 2.5})
    2500
    """
    return round(1000 * float(row["time"]))
