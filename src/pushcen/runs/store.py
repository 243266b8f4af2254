"""Which run is in which folder, by what its config says; and what the folders of new runs are called."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pushcen.config import Config
from pushcen.errors import PushcenError
from pushcen.folder import CONFIG
from pushcen.runs.run import Run, folders_in, identity_in


class RunStore:
    """Run folders by what their configs say: the same run serves every table that has it, under whatever name.

    New runs go below `root`; finished ones are also looked for below `also`, at most two folders deep.
    """

    def __init__(self, root: Path, also: Sequence[Path] = ()) -> None:
        self.root = root
        self._found: dict[frozenset[Any], Path] = {}
        for folder in [folder for one in (root, *also) for folder in folders_in(one)]:
            with contextlib.suppress(PushcenError):  # what is no run is not looked for
                self._found.setdefault(frozenset(identity_in(folder).items()), folder)

    def where(self, config: Config) -> Path | None:
        """Return the folder of a config's run, if it has one."""
        return self._found.get(_key(config))

    def find(self, config: Config) -> Run | None:
        """Return the run of a config, finished or not, if it is there."""
        folder = self.where(config)
        return Run.open(folder) if folder is not None and (folder / CONFIG).is_file() else None

    def folder(self, name: str, config: Config) -> Path:
        """Return where the run of a config is, or is to be: `root/name`, or `root/name-2` if that is taken."""
        key = _key(config)
        if key not in self._found:
            taken, names = set(self._found.values()), numbered(self.root, name)
            self._found[key] = next(folder for folder in names if folder not in taken and not folder.exists())
        return self._found[key]


def _key(config: Config) -> frozenset[Any]:
    return frozenset(config.identity().items())


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
    """Return the first of `name`, `name-2`, ... that is free, or has some of these runs and no other in their place."""
    return next(folder for folder in numbered(runs, name) if not folder.exists() or _holds(folder, configs))


def _holds(folder: Path, configs: Mapping[str, Config]) -> bool:
    there = {part: folder / part for part in configs if (folder / part / CONFIG).is_file()}
    if any(identity_in(at) != configs[part].identity() for part, at in there.items()):
        return False
    store = RunStore(folder)
    return any(store.where(config) for config in configs.values())
