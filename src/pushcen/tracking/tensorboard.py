"""TensorBoard event files, in the folder `tensorboard` of a run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from pushcen.simulation import Quiet
from pushcen.tracking.observers import scalars, step


class TensorBoard(Quiet):
    """Writes every figure of every row; a resumed run purges what it is about to write again."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self._folder, self._config = folder / "tensorboard", config
        self._writer: SummaryWriter | None = None

    def started(self, info: dict[str, Any]) -> None:
        """Open the event file."""
        purge = step(info) + 1 if info.get("time") else None
        self._writer = SummaryWriter(str(self._folder), purge_step=purge)
        text = json.dumps(self._config, indent=2)
        self._writer.add_text("config", f"```json\n{text}\n```")

    def evaluated(self, row: dict[str, Any]) -> None:
        """Write a row."""
        assert self._writer is not None
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, step(row))
        self._writer.flush()

    def ended(self, summary: dict[str, Any]) -> None:  # noqa: ARG002
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
