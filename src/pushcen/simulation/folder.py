"""The files of a run: metrics as they happen, the summary, the status. Whenever it is killed, nothing here lies.

A file is either appended to and cut back to what a checkpoint has seen (`metrics.jsonl`), or replaced as a whole.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pushcen.errors import RunError
from pushcen.files import write_whole

METRICS, SUMMARY, STATUS, CHECKPOINT = "metrics.jsonl", "summary.json", "status.json", "checkpoint"


class Folder:
    """A run's folder, or none: then nothing is written.

    >>> folder = Folder(None)
    >>> folder.write_row({"time": 1.0})
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock: int | None = None
        self._metrics: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Keep everybody else out while a run is written."""
        if self.path is None:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RunError(f"{self.path}: another process is running in this folder") from None
        try:
            yield
        finally:
            if self._metrics is not None:
                self._metrics.close()
            os.close(lock)

    def begin(self, metrics_bytes: int) -> None:
        """Go on from where the metrics had so many bytes: what came later will come again."""
        if self.path is None:
            return
        (self.path / SUMMARY).unlink(missing_ok=True)
        metrics = self.path / METRICS
        size = metrics.stat().st_size if metrics.exists() else 0
        if size < metrics_bytes:
            raise RunError(f"{metrics}: has {size} bytes, and the checkpoint saw {metrics_bytes}: it was cut off")
        self._metrics = metrics.open("ab")
        self._metrics.truncate(metrics_bytes)
        self._metrics.seek(metrics_bytes)

    def write_row(self, row: dict[str, Any]) -> None:
        """Append a row to the metrics, for all to read."""
        if self._metrics is not None:
            self._metrics.write(as_json(row).encode() + b"\n")
            self._metrics.flush()

    def sync_metrics(self) -> int:
        """Make the rows durable; return how many bytes they have."""
        if self._metrics is None:
            return 0
        os.fsync(self._metrics.fileno())
        return int(self._metrics.tell())

    def write_status(self, status: str, **more: Any) -> None:
        """Say how the run stands: running, finished, interrupted or failed."""
        if self.path is not None:
            write_whole(self.path / STATUS, (as_json({"status": status, **more}, indent=2) + "\n").encode())

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write the summary, whole or not at all."""
        if self.path is not None:
            write_whole(self.path / SUMMARY, (as_json(summary, indent=2) + "\n").encode())


def as_json(value: Any, indent: int | None = None) -> str:
    """Write JSON that is the same for the same value.

    >>> as_json({"b": 1, "a": 0.5})
    '{"a": 0.5, "b": 1}'
    """
    return json.dumps(value, sort_keys=True, indent=indent, allow_nan=False)
