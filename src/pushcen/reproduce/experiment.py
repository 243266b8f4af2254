"""Experiment files: which rows a table has, and what to run for each. Each is checked when it is read."""

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pushcen.errors import ConfigError
from pushcen.reproduce import paper

SCALES = ("paper", "small")
Settings = dict[str, Any]
"""Values by the full keys of a config: `data.alpha`."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    label: str
    paper: str = ""
    base: str = ""
    rules: str = ""
    set: Settings = {}
    small: Settings = {}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    title: str
    table: str
    shows: str = "accuracy"
    alphas: list[float] = []
    base: str = ""
    rows_of: str = ""
    rows: dict[str, _Row] = {}


@dataclass(frozen=True)
class Row:
    """A row of a table: its label, its name in the paper's table, the row it is compared with, and its settings."""

    name: str
    label: str
    paper: str
    base: str
    settings: Settings
    small: Settings

    def at(self, scale: str) -> Settings:
        """Give the settings at a scale."""
        return self.settings | (self.small if scale == "small" else {})


@dataclass(frozen=True)
class Experiment:
    """What a table needs: its rows, and for each the alphas to run (none: as the world has it)."""

    name: str
    title: str
    table: str
    """The paper's table beside it; a name that the paper does not have, if there is none."""
    shows: str
    """accuracy or delayed."""
    alphas: tuple[float, ...]
    rows: tuple[Row, ...]

    def only(self, rows: tuple[str, ...] = (), alphas: tuple[float, ...] = ()) -> "Experiment":
        """Leave out all other rows and alphas, those asked for in the experiment's own order.

        >>> read("table1").only(rows=("pushcen", "divshare"), alphas=(0.4,)).rows[0].label
        'DivShare'
        """
        known = [row.name for row in self.rows]
        for name in rows:
            if name not in known:
                raise ConfigError(f"--rows {name}: {self.name} has {', '.join(known)}")
        for alpha in alphas:
            if alpha not in self.alphas:
                has = ", ".join(map(str, self.alphas)) or "that of its world only"
                raise ConfigError(f"--alpha {alpha}: {self.name} has {has}")
        kept = tuple(row for row in self.rows if not rows or row.name in rows)
        chosen = tuple(alpha for alpha in self.alphas if not alphas or alpha in alphas)
        return Experiment(self.name, self.title, self.table, self.shows, chosen, kept)


def folder() -> Path:
    """Return where the experiments are: in the package, once it is installed, and else beside its sources."""
    inside = Path(str(resources.files("pushcen"))) / "experiments"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "experiments"


def names() -> list[str]:
    """Name the experiments that have runs.

    >>> names()
    ['changes', 'table1', 'table4', 'table5', 'table6', 'table7']
    """
    return sorted(file.stem for file in folder().glob("*.toml"))


def world(dataset: str, scale: str) -> Path:
    """Return the config of a data set's world at a scale.

    >>> world("cifar10", "small").name
    'cifar10-small.toml'
    """
    if dataset not in paper.DATASETS:
        raise ConfigError(f"--dataset {dataset}: must be one of {', '.join(paper.DATASETS)}")
    if scale not in SCALES:
        raise ConfigError(f"--scale {scale}: must be one of {', '.join(SCALES)}")
    return folder() / "worlds" / f"{dataset}-{scale}.toml"


@functools.cache
def read(name: str) -> Experiment:
    """Read an experiment by its name, or from a file of one's own.

    >>> [row.name for row in read("table4").rows][:3]
    ['pushcen', 'no-regulariser', 'no-buffer']
    >>> read("table8")
    Traceback (most recent call last):
    pushcen.errors.ConfigError: table8: no such experiment; there are changes, table1, table4, ...
    """
    path = Path(name) if name.endswith(".toml") else folder() / f"{name}.toml"
    file = _read(path, name)
    rows = file.rows or ({row.name: row for row in read(file.rows_of).rows} if file.rows_of else {})
    if not rows:
        raise ConfigError(f"{path}: must have rows, or rows_of")
    made = tuple(
        row if isinstance(row, Row) else Row(key, row.label, row.paper, row.base, _rules(row.rules) | row.set, row.small)
        for key, row in rows.items()
    )
    made = tuple(Row(r.name, r.label, r.paper, r.base or file.base, r.settings, r.small) for r in made)
    for row in made:
        if row.base and row.base not in rows:
            raise ConfigError(f"{path}: rows.{row.name}.base = {row.base!r}: must be one of {', '.join(rows)}")
    if file.shows not in ("accuracy", "delayed"):
        raise ConfigError(f"{path}: shows = {file.shows!r}: must be accuracy or delayed")
    return Experiment(path.stem, file.title, file.table, file.shows, tuple(file.alphas), made)


def _rules(name: str) -> Settings:
    if not name:
        return {}
    path = folder() / "rules" / f"{name}.toml"
    return TypeAdapter(Settings).validate_python(_toml(path, f"rules = {name!r}"))


def _read(path: Path, name: str) -> _File:
    try:
        return _File.model_validate(_toml(path, name))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _toml(path: Path, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such experiment; there are {', '.join(names())}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
