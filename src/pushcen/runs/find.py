"""Runs below folders."""

from collections.abc import Iterable
from pathlib import Path

from pushcen.errors import RunError
from pushcen.folder import CONFIG
from pushcen.runs.run import Run


def find_runs(folders: Iterable[Path]) -> list[Run]:
    """Open runs: each folder is one, or holds some (at most two folders deep), in the order of their making.

    >>> find_runs([Path("no/such")])
    Traceback (most recent call last):
    pushcen.errors.RunError: no/such: no such folder
    """
    runs: dict[Path, Run] = {}
    for folder in folders:
        found = [folder] if (folder / CONFIG).is_file() else _inside(folder)
        if not found:
            raise RunError(f"{folder}: no such folder" if not folder.is_dir() else f"{folder}: holds no run")
        runs |= {path.resolve(): Run.open(path) for path in found}
    return list(runs.values())


def _inside(folder: Path) -> list[Path]:
    found = [file for pattern in (f"*/{CONFIG}", f"*/*/{CONFIG}") for file in folder.glob(pattern)]
    return [file.parent for file in sorted(found, key=lambda file: (file.stat().st_mtime_ns, file))]
