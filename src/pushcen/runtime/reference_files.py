"""The files of a peer's references, in its state folder: `reference-7.payload`, the bytes as they were offered.

Each is written and synced first; it counts once a commit of the ledger names it.
"""

import contextlib
import itertools
import os
from collections.abc import Collection
from pathlib import Path

import xxhash

from pushcen.errors import LedgerError
from pushcen.files import sync
from pushcen.runtime.state_folder import File, explained

_PATTERN = "reference-*.payload"


class ReferenceFiles:
    """Writes and reads the files of references, and removes those that no commit names any more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        numbers = [path.stem.rpartition("-")[2] for path in folder.glob(_PATTERN)]
        self._numbers = itertools.count(1 + max((int(number) for number in numbers if number.isdecimal()), default=0))
        self._unnamed: set[str] = set()  # written, and about to be named in a commit

    def write(self, data: bytes) -> File:
        """Write a reference to a new file, sync it, and return what the ledger says of the file."""
        path = self._folder / f"reference-{next(self._numbers)}.payload"
        self._unnamed.add(path.name)
        try:
            with explained(path):
                with path.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                sync(self._folder)
        except LedgerError:
            self.discard(path.name)
            raise
        return File(path.name, len(data), _digest(data))

    def read(self, file: File) -> bytes:
        """Return the bytes of a file that the ledger names; refuse what is not as it was committed."""
        path = self._folder / Path(file.name).name
        with explained(path):
            data = path.read_bytes() if path.is_file() else b""
        if len(data) != file.size or _digest(data) != file.digest:
            raise LedgerError(
                f"{path}: is missing or not what was committed; restore a backup, or start in an empty folder"
            )
        return data

    def drop(self, name: str) -> None:
        """Note that the next commit does not name a file; it is removed after that."""
        self._unnamed.discard(name)

    def discard(self, name: str) -> None:
        """Remove a file that no commit will name."""
        self.drop(name)
        with contextlib.suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def tidy(self, named: Collection[str]) -> None:
        """Remove the files that neither the last commit names nor the next one will."""
        self._unnamed.difference_update(named)
        keep = {*named, *self._unnamed}
        with contextlib.suppress(OSError):  # what stays is removed after the next commit
            for path in self._folder.glob(_PATTERN):
                if path.name not in keep:
                    path.unlink(missing_ok=True)


def _digest(data: bytes) -> str:
    return xxhash.xxh3_128(data).hexdigest()
