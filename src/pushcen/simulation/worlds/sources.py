"""Files that a user brings: read whole or refused with the option that names them; known by what is in them."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import DataError, OptionError
from pushcen.locate import source_of
from pushcen.npz import UNREADABLE, read_array

LARGEST = 1 << 30  # bytes of a file that is read


def fingerprint(value: str, key: str) -> str:
    """Return what tells the contents of a file, or of the file that a function is in, from all others.

    >>> fingerprint("json:loads", "neighbours.graph")
    'sha256:...'
    """
    path = source_of(value, key) if is_function(value) else Path(value)
    return f"sha256:{hashlib.sha256(_bytes(path, f'{key} = {value!r}')).hexdigest()[:32]}"


def is_function(value: str) -> bool:
    """Return whether a value names a function: `module:function` or `file.py:function`."""
    where, _, thing = value.rpartition(":")
    return bool(where) and thing.isidentifier() and not Path(value).is_file()


def read_text(path: Path, said: str) -> str:
    """Return the text of a file; `said` is what errors begin with: `neighbours.graph = 'mine.txt'`."""
    try:
        return _bytes(path, said).decode()
    except UnicodeDecodeError as error:
        raise OptionError(f"{said}: must be a text file: {error}") from None


def read_json(path: Path, said: str) -> Any:
    """Return what is in a JSON file, in which no key stands twice."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(found)
        if len(table) < len(found):
            names = [name for name, _ in found]
            twice = next(name for name in table if names.count(name) > 1)
            raise OptionError(f"{said}: {twice!r:.80} is there twice")
        return table

    text = read_text(path, said)
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except OptionError:
        raise
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{said}: must be a JSON file: {error!s:.200}") from None


def read_npz(path: Path, said: str, arrays: Mapping[str, int], optional: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Return arrays of numbers of an npz file, each with so many dimensions; the `optional` ones if they are there."""
    _check_file(path, said)
    try:
        with zipfile.ZipFile(path) as archive:
            there = {name.removesuffix(".npy") for name in archive.namelist()}
            for name in (name for name in arrays if name not in there):
                raise OptionError(f"{said}: has no array {name}; it has {', '.join(sorted(there))[:200]}")
            if sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise OptionError(f"{said}: holds more than {LARGEST >> 30} GiB")
            wanted = {**arrays, **{name: size for name, size in optional.items() if name in there}}
            found = {name: read_array(archive, name, path, size) for name, size in wanted.items()}
    except (OptionError, DataError) as error:
        raise OptionError(str(error).replace(f"{path}: ", f"{said}: ", 1)) from None
    except UNREADABLE as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OptionError(f"{said}: must be an npz file: {reason}") from None
    for name, array in found.items():
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise OptionError(f"{said}: {name}: must be finite numbers")
    return found


def _bytes(path: Path, said: str) -> bytes:
    _check_file(path, said)
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionError(f"{said}: {error.strerror}") from error


def _check_file(path: Path, said: str) -> None:
    """Refuse what is no file, or too large a one."""
    try:
        plain, size = path.is_file(), path.stat().st_size
    except (OSError, ValueError) as error:
        raise OptionError(f"{said}: {getattr(error, 'strerror', None) or error}") from None
    if not plain:
        raise OptionError(f"{said}: is no file")
    if size > LARGEST:
        raise OptionError(f"{said}: is larger than {LARGEST >> 30} GiB")
