"""What the folder of a run is called: by its label, and where that name is taken `name-2`, `name-3`, ..."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from pushcen.config import Config
from pushcen.folder import CONFIG
from pushcen.runs.run import identity_in


def folder_name(label: str) -> str:
    """Return a label as the name of a folder.

    >>> folder_name("method.clusters=8, data.source=some/file")
    'method.clusters=8,data.source=some_file'
    """
    return "".join(letter if letter.isalnum() or letter in "=.,-" else "_" for letter in label.replace(", ", ","))


def numbered(runs: Path, name: str) -> Iterator[Path]:
    """Yield `runs/name`, `runs/name-2`, `runs/name-3`, ...: what a folder may be called, in the order of choice.

    >>> [folder.name for folder in itertools.islice(numbered(Path("runs"), "digits"), 3)]
    ['digits', 'digits-2', 'digits-3']
    """
    yield runs / name
    yield from (runs / f"{name}-{number}" for number in itertools.count(2))


def free_folder(runs: Path, name: str) -> Path:
    """Return `runs/name`, or the first of `runs/name-2`, `runs/name-3`, ... that is not taken.

    >>> free_folder(Path("no/such"), "digits").as_posix()
    'no/such/digits'
    """
    return next(folder for folder in numbered(runs, name) if not folder.exists())


def folder_for(runs: Path, name: str, configs: Mapping[str, Config]) -> Path:
    """Return the first of `name`, `name-2`, ... that is free, or whose runs so far are those of `configs`."""
    return next(folder for folder in numbered(runs, name) if not folder.exists() or _holds(folder, configs))


def _holds(folder: Path, configs: Mapping[str, Config]) -> bool:
    there = {part: folder / part for part in configs if (folder / part / CONFIG).is_file()}
    return bool(there) and all(identity_in(at) == configs[part].identity() for part, at in there.items())
