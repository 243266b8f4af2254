"""Weights & Biases; with WANDB_MODE=offline it writes files in the run's folder, and needs no network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from pushcen.simulation import Quiet
from pushcen.tracking.observers import scalars


class WandB(Quiet):
    """Logs the config and every row, by pseudo-time; a resumed run goes on in the same W&B run."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder, dict(config)
        self._run: Any = None

    def started(self, info: dict[str, Any]) -> None:  # noqa: ARG002
        """Open the run."""
        note = self._folder / "wandb_run"
        known = note.read_text().strip() if note.is_file() else None
        self._run = wandb.init(
            project="pushcen",
            name=self._folder.name,
            dir=str(self._folder),
            config=self._config,
            id=known,
            resume="allow",
            settings=wandb.Settings(silent=True),
        )
        note.write_text(self._run.id)
        self._run.define_metric("*", step_metric="time")

    def evaluated(self, row: dict[str, Any]) -> None:
        """Log a row."""
        self._run.log(scalars(row))

    def ended(self, summary: dict[str, Any]) -> None:
        """Close the run."""
        self._run.summary.update(scalars(summary))
        self._run.finish()
