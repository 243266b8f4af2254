"""The state folder of a peer: a ledger in SQLite, tensors in safetensors, and a lock.

    ledger.db                  what the peer holds, sent and credited; which files belong to it, with their hashes
    weights-7.safetensors      tensors; each commit names the newest, and removes the others
    optimiser-5.safetensors    those of the optimiser, which are large, and saved less often
    reference-3.payload        references, of methods that have some: reference_files.py
    lock                       held by the process that runs the peer

Durable order of a commit: tensors to a new file, synced; then one transaction with everything else, which names that
file. Before the transaction nothing has happened; after it, everything has.
"""

import contextlib
import errno
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash
from safetensors import SafetensorError

from pushcen.errors import DiskError, LedgerError
from pushcen.files import sync
from pushcen.runtime.locks import take

if TYPE_CHECKING:  # who reads a ledger only, does not load torch, which takes seconds
    import torch

FORMAT = 1
LEDGER = "ledger.db"
Plain = dict[str, Any]
Tensors = Mapping[str, "torch.Tensor"]


_PASSING = {
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EAGAIN, errno.EBUSY, errno.ENOMEM,
    errno.EINTR, errno.ETIMEDOUT, errno.ESTALE,
}  # fmt: skip
_PASSING_SQLITE = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


class File(NamedTuple):
    """A file of tensors, as the ledger knows it."""

    name: str
    size: int
    digest: str


class StateFolder:
    """A state folder, open in one process. Every failure is a `LedgerError`, and leaves the last commit in place.

    What may pass, such as a full disk, is a `DiskError`: the same call may be made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _kind(error.errno)(
                f"{folder}: {error.strerror}; a peer must be able to write its state folder"
            ) from error
        if not take(self._lock):
            os.close(self._lock)
            raise LedgerError(f"{folder}: another process runs a peer on this state folder")
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, self._lock)
            _make(folder / LEDGER)
            self._db = _connect(folder / LEDGER)
            undo.callback(self._db.close)
            with explained(folder / LEDGER):
                _check(self._db, folder / LEDGER)
                os.utime(folder / LEDGER)  # fails where nothing may be written
            self._number = max(map(_number, folder.glob("*-*.safetensors")), default=0)
            undo.pop_all()

    def load(self) -> Plain:
        """Return everything that was committed; nothing, if nothing was."""
        with explained(self.folder / LEDGER):
            return read_rows(self._db, self.folder)

    def tensors(self) -> "dict[str, torch.Tensor]":
        """Return the tensors of the last commit, if their files are what was committed."""
        return read_tensors(self.folder, self.load().get("files", {}))

    def write(self, group: str, tensors: Tensors) -> File:
        """Write tensors to a new file and sync it. It counts once it is named in a commit."""
        from safetensors.torch import save_file

        self._number += 1
        path = self.folder / f"{group}-{self._number}.safetensors"
        try:
            with explained(path):
                save_file(dict(tensors), path)
                with path.open("rb+") as file:
                    os.fsync(file.fileno())
                sync(self.folder)
                return File(path.name, path.stat().st_size, _digest(path))
        except LedgerError:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)  # half a file would only take room
            raise

    def save(self, tensors: Tensors) -> dict[str, File]:
        """Write a learner's tensors to new files: weights, and the optimiser's state apart, if it is there."""
        groups: dict[str, dict[str, torch.Tensor]] = {"weights": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            groups["optimiser" if name.startswith("optimiser.") else "weights"][name] = tensor.contiguous()
        return {group: self.write(group, some) for group, some in groups.items() if some}

    def commit(self, values: Mapping[str, Any], files: Mapping[str, File] | None = None) -> None:
        """Make values and files durable in one transaction; then remove files that are not named any more."""
        with explained(self.folder / LEDGER):
            rows = [(key, json.dumps(value)) for key, value in values.items()]
            named: dict[str, list[Any]] = {}
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(
                    "INSERT INTO state (key, value) VALUES (?, ?)"
                    " ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value != excluded.value",
                    rows,
                )
                if files:
                    named = _json(self._db, "files") or {}
                    named |= {group: list(file) for group, file in files.items()}
                    self._db.execute(
                        "INSERT OR REPLACE INTO state (key, value) VALUES ('files', ?)", (json.dumps(named),)
                    )
        if files:
            keep = {entry[0] for entry in named.values()}
            with contextlib.suppress(OSError):  # it is committed; what stays is removed after the next commit
                for path in self.folder.glob("*-*.safetensors"):
                    if path.name not in keep:
                        path.unlink(missing_ok=True)

    def is_copy(self) -> bool:
        """Return whether this ledger was copied here, as from a backup: the file is not the one that was made here."""
        made = self.load().get("inode")
        return made is not None and made != self.inode()

    def inode(self) -> int:
        """Return the number of the file that the ledger is, by which a copy is known."""
        return (self.folder / LEDGER).stat().st_ino

    def claim(self) -> None:
        """Take this ledger, wherever it came from, for the original."""
        self.commit({"inode": self.inode()})

    def close(self) -> None:
        """Close the ledger, and release the lock."""
        self._db.close()
        os.close(self._lock)


def _make(path: Path) -> None:
    """Make an empty ledger, if there is none; whoever looks meanwhile sees none, or all of it."""
    if path.exists() and path.stat().st_size:
        return
    new = path.with_name(f"{path.name}.new")
    with explained(path):
        for left in path.parent.glob(f"{new.name}*"):  # by a start that was cut off
            left.unlink()
        with contextlib.closing(_connect(new)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
        new.replace(path)
        sync(path.parent)


def read_state(folder: Path) -> Plain:
    """Read the ledger of a peer that may be running, without touching it."""
    path = folder / LEDGER
    if not path.is_file():
        raise LedgerError(f"{folder}: has no {LEDGER}; it is no state folder of a peer")
    with explained(path), contextlib.closing(_connect(path, readonly=True)) as db:
        _check(db, path, quick=True)
        return read_rows(db, folder)


def read_rows(db: sqlite3.Connection, folder: Path) -> Plain:
    """Read all of a ledger, as of one moment."""
    try:
        return {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM state")}
    except ValueError as error:
        raise LedgerError(
            f"{folder / LEDGER}: is damaged: {error}; restore a backup, or start in an empty folder"
        ) from error


def read_tensors(folder: Path, files: Mapping[str, list[Any]]) -> "dict[str, torch.Tensor]":
    """Read files of tensors that the ledger names."""
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = {}
    for entry in files.values():
        name, size, digest = entry
        path = folder / Path(name).name
        with explained(path):
            if not path.is_file() or path.stat().st_size != size or _digest(path) != digest:
                raise LedgerError(
                    f"{path}: is missing or not what was committed; restore a backup, or start in an empty folder"
                )
            found |= load_file(path)
    return found


def _connect(path: Path, readonly: bool = False) -> sqlite3.Connection:
    with explained(path):
        # if nobody has it open, leave nothing beside it
        still = readonly and not path.with_name(f"{path.name}-wal").exists()
        uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}{'&immutable=1' if still else ''}"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10, check_same_thread=False)
        db.execute("PRAGMA synchronous = FULL")
        return db


def _check(db: sqlite3.Connection, path: Path, quick: bool = False) -> None:
    [version] = db.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise LedgerError(f"{path}: has format {version}, from a newer pushcen; this one reads {FORMAT}: upgrade it")
    if version < 1:
        raise LedgerError(f"{path}: is no ledger of a peer")
    if not quick:
        [verdict] = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise LedgerError(f"{path}: is damaged: {verdict}; restore a backup, or start in an empty folder")


def _json(db: sqlite3.Connection, key: str) -> Any:
    row = db.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
    return json.loads(row[0]) if row else None


def _number(path: Path) -> int:
    number = path.stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _digest(path: Path) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _kind(number: int | None) -> type[LedgerError]:
    return DiskError if number in _PASSING else LedgerError


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the disk and SQLite say into a `LedgerError` that names the file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        hint = {
            "database or disk is full": "free some space; nothing committed is lost",
            "attempt to write a readonly database": "a peer must be able to write its state folder",
            "file is not a database": "restore a backup, or start in an empty folder",
            "database disk image is malformed": "restore a backup, or start in an empty folder",
        }.get(str(error), "nothing committed is lost")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        passes = code in _PASSING_SQLITE and os.access(path if path.exists() else path.parent, os.R_OK | os.W_OK)
        raise (DiskError if passes else LedgerError)(f"{path}: {error}; {hint}") from error
    except SafetensorError as error:
        told = re.search(r"\(os error (\d+)\)", str(error))
        raise _kind(told and int(told[1]))(f"{path}: {error}; nothing committed is lost") from error
    except OSError as error:
        raise _kind(error.errno)(f"{path}: {error.strerror or error}; nothing committed is lost") from error
