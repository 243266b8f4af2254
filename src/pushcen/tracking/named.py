"""Trackers by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
    """Make trackers for a run: by name, or by `module:Class` for one of your own.

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
