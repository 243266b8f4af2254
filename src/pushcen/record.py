"""The record of a run: what happened, as it happened, and how clients stood at each evaluation.

Two files of JSON lines in the folder `record` of a run, each with a head as its first line (docs/watch.md has them).
They are appended to, and cut back to what a checkpoint has seen: the same run, the same bytes. Neither grows above
`LARGEST`. What is read may come from anybody: sizes are checked before anything is allocated, lines by `pushcen.watch`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pushcen.errors import RunError

RECORD, EVENTS, STATES, PEERS = "record", "events.jsonl", "states.jsonl", "peers.json"
VERSION = 1
LARGEST = 1 << 26
"""Bytes of a file; a line that begins beyond is not written."""
LONGEST = 1 << 22
"""Bytes of a line that is read: a hundred thousand clients' masses fit."""
CHUNK = 1 << 23
"""Bytes that are read at a time."""
JOINS, RETURNS, REPAIRED, LEAVES, FAREWELL, CRASHES, SILENT, ANSWERS = VISITS = (
    "joins", "returns", "is repaired", "leaves", "says farewell", "crashes", "falls silent", "answers again",
)  # fmt: skip
"""How clients come and go, as the record calls it."""
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class RecordFile:
    """One of the two files, to append to; what was added is there after `flush`."""

    def __init__(self, file: Path, size: int = 0) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("ab")
        self._file.truncate(size)
        self._file.seek(size)
        self._lines: list[bytes] = []
        self.size = size

    def add(self, line: Any) -> None:
        """Append a line, unless the file is full."""
        if self.size < LARGEST:
            data = _encode(line).encode() + b"\n"
            self.size += len(data)
            self._lines.append(data)

    def flush(self) -> None:
        """Let others read all that was added."""
        if self._lines:
            self._file.write(b"".join(self._lines))
            self._file.flush()
            self._lines.clear()

    def sync(self) -> int:
        """Make all that was added durable; return how many bytes the file has."""
        self.flush()
        os.fsync(self._file.fileno())
        return self.size

    def close(self) -> None:
        """Write the rest, and close the file."""
        self.flush()
        self._file.close()


class RecordTail:
    """Reads one of the two files as it grows.

    >>> RecordTail(Path("no/such/record")).more()
    (False, [])
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._at = self._number = 0
        self._head = b""

    @property
    def full(self) -> bool:
        """Whether the file has come to its bound, so that it says nothing of what happened later."""
        return self._at >= LARGEST

    def more(self) -> tuple[bool, list[Any]]:
        """Return whether it begins anew, and lines since the last call; a line that is being written comes later.

        It begins anew if it was cut back, or replaced by that of another run. If there is much, not all is returned:
        there is no more when there are no lines.
        """
        if not self._file.is_file():
            return self._restart() if self._at else False, []
        size = self._file.stat().st_size
        if size > LARGEST + LONGEST:
            raise RunError(f"{self._file}: has {size:,} bytes, over {LARGEST + LONGEST:,}")
        with self._file.open("rb") as file:
            anew = bool(self._at) and (size < self._at or file.read(len(self._head)) != self._head) and self._restart()
            file.seek(self._at)
            data = file.read(min(size - self._at, CHUNK))
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) > LONGEST:
            raise RunError(f"{self._file}, line {self._number + 1}: has over {LONGEST:,} bytes")
        if not self._at:
            self._head = whole[: whole.find(b"\n") + 1]
        lines = list(self._parsed(whole))
        self._at += len(whole)
        return anew, lines

    def _parsed(self, data: bytes) -> Iterator[Any]:
        for line in data.split(b"\n")[:-1]:
            self._number += 1
            try:
                if len(line) > LONGEST:
                    raise ValueError(f"{len(line):,} bytes")
                yield json.loads(line.decode("utf-8"), parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                raise RunError(f"{self._file}, line {self._number}: is not JSON: {error}") from None

    def _restart(self) -> bool:
        self._at = self._number = 0
        return True


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")
