"""Files that are there whole or not at all, and are still there after the power fails."""

import os
from pathlib import Path


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file under another name, sync it, and move it into place; if anything fails, the old one stays.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note"
    >>> write_whole(path, b"hello")
    >>> path.read_bytes()
    b'hello'
    """
    draft = path.with_name(path.name + ".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
