"""The folder of a run, simulated or real: the only place where its files are named, written and read.

A file is either appended to and cut back to what a checkpoint has seen (`metrics.jsonl`), or replaced as a whole:
whenever a run is killed, what is here is true. What is read may come from anybody, and is checked.
"""

import contextlib
import fcntl
import json
import math
import os
import socket
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit

from pushcen.checks import is_finite
from pushcen.errors import RunError
from pushcen.files import write_whole

CONFIG, METRICS, SUMMARY, STATUS = "config.toml", "metrics.jsonl", "summary.json", "status.json"
CHECKPOINT, TRACEBACK, LOCK = "checkpoint", "traceback.txt", "lock"
REAL = "real"  # what the summary of a network of real peers has as its `world`
_LARGEST = {CONFIG: 1 << 20, METRICS: 1 << 31, SUMMARY: 1 << 28, STATUS: 1 << 20}  # bytes; more is no run of ours
_LONGEST_LINE = 1 << 26
_ALIVE = 15.0  # seconds after which a run touches its lock again
_DEAD = 90.0  # and after which one that does not is taken for interrupted
_TRIES = 20  # to lock a folder, each a twentieth of a second after the last: who looks whether it is locked has it then
Row = dict[str, Any]


class Folder:
    """Writes a run's folder; without a path, it writes nothing.

    >>> folder = Folder(None)
    >>> folder.write_row({"time": 1.0})
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock: int | None = None
        self._metrics: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder's lock within this context, so that only one process writes the run."""
        if self.path is None:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        for left in reversed(range(_TRIES)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    os.close(lock)
                    raise RunError(f"{self.path}: another process is running in this folder") from None
                time.sleep(0.05)
        os.ftruncate(lock, 0)
        os.write(lock, socket.gethostname().encode())
        over = threading.Event()
        threading.Thread(target=_touch, args=(self.path / LOCK, over), daemon=True).start()
        try:
            yield
        finally:
            over.set()
            if self._metrics is not None:
                self._metrics.close()
            os.close(lock)

    def begin(self, metrics_bytes: int) -> None:
        """Cut the metrics back to so many bytes, and append to them from there: what came later comes again."""
        if self.path is None:
            return
        for old in (SUMMARY, TRACEBACK):
            (self.path / old).unlink(missing_ok=True)
        metrics = self.path / METRICS
        size = metrics.stat().st_size if metrics.exists() else 0
        if size < metrics_bytes:
            raise RunError(f"{metrics}: has {size} bytes, and the checkpoint saw {metrics_bytes}: it was cut off")
        self._metrics = metrics.open("ab")
        self._metrics.truncate(metrics_bytes)
        self._metrics.seek(metrics_bytes)

    def write_config(self, values: Mapping[str, Any]) -> None:
        """Write the config, in nested values, whole or not at all; make the folder if need be."""
        if self.path is not None:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / CONFIG, tomlkit.dumps(dict(values)).encode())

    def write_row(self, row: Row) -> None:
        """Append a row to the metrics."""
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
        """Write the status of the run: running, finished, interrupted or failed."""
        if self.path is not None:
            write_whole(self.path / STATUS, (as_json({"status": status, **more}, indent=2) + "\n").encode())

    def write_traceback(self, text: str) -> Path | None:
        """Write where an error came from, if the folder is there; return the file."""
        if self.path is None or not self.path.is_dir():
            return None
        write_whole(self.path / TRACEBACK, text.encode())
        return self.path / TRACEBACK

    def write_summary(self, summary: Row) -> None:
        """Write the summary, whole or not at all."""
        if self.path is not None:
            write_whole(self.path / SUMMARY, (as_json(summary, indent=2) + "\n").encode())


def as_json(value: Any, indent: int | None = None) -> str:
    """Return JSON that is the same for the same value.

    >>> as_json({"b": 1, "a": 0.5})
    '{"a": 0.5, "b": 1}'
    """
    return json.dumps(value, sort_keys=True, indent=indent, allow_nan=False)


def read_config(folder: Path) -> dict[str, Any]:
    """Return the config of a run, in nested values.

    >>> read_config(Path("no/such/run"))
    Traceback (most recent call last):
    pushcen.errors.RunError: no/such/run: no such folder
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder" if not folder.exists() else f"{folder}: is a file, not a run")
    if not (folder / CONFIG).is_file():
        raise RunError(f"{folder}: is not a run: it has no {CONFIG}")
    try:
        return tomllib.loads(_text(folder / CONFIG))
    except (ValueError, RecursionError) as error:  # no TOML, or a number without end
        raise RunError(f"{folder / CONFIG}: {error}") from None


def read_rows(folder: Path) -> Iterator[Row]:
    """Yield the rows of the metrics so far; a last line that is still being written is left out."""
    file = folder / METRICS
    if not file.is_file():
        return
    time = -math.inf
    lines = _text(file).split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row: Any = json.loads(line, parse_constant=lambda _: None) if len(line) < _LONGEST_LINE else None
        except (ValueError, RecursionError):
            if number == len(lines):  # no newline after it: it is being written
                return
            raise RunError(f"{file}, line {number}: is not JSON") from None
        at = row.get("time") if isinstance(row, dict) else None
        if not is_finite(at) or at < time:
            raise RunError(f"{file}, line {number}: must be an object with a time that does not fall")
        time = at
        yield row


def read_summary(folder: Path) -> Row | None:
    """Return the summary; None if the run is not finished."""
    file = folder / SUMMARY
    if not file.is_file():
        return None
    try:
        summary = json.loads(_text(file), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file}: is not JSON: {error}") from None
    if not isinstance(summary, dict):
        raise RunError(f"{file}: must be a JSON object")
    return _renamed(summary)


def read_status(folder: Path) -> str:
    """Return how a run is: running, finished, interrupted or failed; unknown if it says nothing.

    One that says that it runs, and whose process is gone, was interrupted.

    >>> read_status(Path("no/such/run"))
    'unknown'
    """
    try:
        status = json.loads(_text(folder / STATUS)).get("status")
    except (OSError, ValueError, RecursionError, AttributeError, RunError):
        return "unknown"
    if status == "running" and not _is_alive(folder):
        return "interrupted"
    return status if status in ("running", "finished", "interrupted", "failed") else "unknown"


def _is_alive(folder: Path) -> bool:
    """Return whether a process has the folder: it holds its lock, or, on another machine, has touched it of late."""
    with contextlib.suppress(OSError):
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe waits for nobody
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.read(lock, 300) == socket.gethostname().encode():
                return False
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    files = [folder / name for name in (LOCK, STATUS, METRICS)]
    newest = max((file.stat().st_mtime for file in files if file.is_file()), default=0.0)
    return time.time() - newest < _DEAD


def _touch(file: Path, over: threading.Event) -> None:
    """Touch a file again and again, so that other machines see that somebody is there."""
    while True:
        with contextlib.suppress(OSError):
            os.utime(file)
        if over.wait(_ALIVE):
            return


def _renamed(summary: Row) -> Row:
    """Return the summary with today's names for mass, in shares; earlier versions of real networks wrote units."""
    founded = number(summary, "meters.mass.founded")
    if not founded:
        return summary
    names = {"held": "mass_held", "on_links": "mass_under_way", "lost": "mass_destroyed"}
    mass: Row = {new: (number(summary, f"meters.mass.{old}") or 0.0) / founded for old, new in names.items()}
    exact = summary["meters"]["mass"].get("exact") is True
    mass |= {"exact": exact, "mass_exact": exact, "mass_waiting": 0.0}
    return {**summary, "world": REAL, "meters": {"mass": mass}}


def number(values: Any, name: str) -> float | None:
    """Return a figure of a row or a summary, if it is there and finite; `meters.mass.exact` goes inside.

    >>> number({"meters": {"mass": {"mass_held": 0.5}}}, "meters.mass.mass_held"), number({}, "loss")
    (0.5, None)
    """
    for part in name.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return float(values) if is_finite(values) else None


def _text(file: Path) -> str:
    if not file.is_file():  # a pipe or a device has no end
        raise RunError(f"{file}: no such file")
    if file.stat().st_size > _LARGEST[file.name]:
        raise RunError(f"{file}: has {file.stat().st_size:,} bytes, over {_LARGEST[file.name]:,}")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{file}: is not text: {error}") from None
