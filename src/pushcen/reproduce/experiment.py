"""Experiment files: which rows a table has, and what to run for each. Each is checked when it is read."""

import functools
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pushcen.errors import ConfigError
from pushcen.reproduce import paper

SCALES = ("paper", "medium", "small", "field", "tuning")
TITLES = {**paper.TITLES, "digits": "digits"}
"""Data sets that have worlds."""
Settings = dict[str, Any]
"""Values by the full keys of a config: `data.alpha`."""


class Row(BaseModel):
    """A row of a table: its label, its name in the paper's table, the row it is compared with, and its settings."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    name: str = ""
    label: str
    paper: str = ""
    base: str = ""
    rules: str = ""
    """A file of settings that several rows share."""
    set: Settings = {}
    small: Settings = {}
    """Settings at all scales but the paper's."""

    def at(self, scale: str) -> Settings:
        """Return the settings at a scale."""
        return _rules(self.rules) | self.set | ({} if scale == "paper" else self.small)


class Experiment(BaseModel):
    """What a table needs: its rows, and for each the alphas to run (none: as the world has it)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    name: str = ""
    title: str
    table: str
    """The paper's table beside it; a name that the paper does not have, if there is none."""
    shows: Literal["accuracy", "bytes", "delayed", "field"] = "accuracy"
    scale: str = "small"
    """The world that it is for, if nothing else is said."""
    target: dict[str, float] = {}
    """Until which accuracy, in percent, bytes are counted, by data set and scale: `cifar10-paper`."""
    alphas: list[float] = []
    base: str = ""
    """The row that all are compared with, unless they say otherwise."""
    rows_of: str = ""
    """An experiment whose rows these are."""
    rows: dict[str, Row] = {}

    def only(self, rows: tuple[str, ...] = (), alphas: tuple[float, ...] = ()) -> "Experiment":
        """Return the experiment with these rows and alphas only, in its own order.

        >>> list(read("table1").only(rows=("pushcen", "divshare"), alphas=(0.4,)).rows)
        ['divshare', 'pushcen']
        """
        for name in rows:
            if name not in self.rows:
                raise ConfigError(f"--rows {name}: {self.name} has {', '.join(self.rows)}")
        for alpha in alphas:
            if alpha not in self.alphas:
                has = ", ".join(map(str, self.alphas)) or "that of its world only"
                raise ConfigError(f"--alpha {alpha}: {self.name} has {has}")
        kept = {name: row for name, row in self.rows.items() if not rows or name in rows}
        chosen = [alpha for alpha in self.alphas if not alphas or alpha in alphas]
        return self.model_copy(update={"rows": kept, "alphas": chosen})


def folder() -> Path:
    """Return where the experiments are: in the package, once it is installed, and else beside its sources."""
    inside = Path(str(resources.files("pushcen"))) / "experiments"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "experiments"


def names() -> list[str]:
    """Return the names of the experiments that have runs.

    >>> names()
    ['bytes', 'changes', 'field', 'lean', 'table1', 'table4', 'table5', 'table6', 'table7', 'time', 'tuning']
    """
    return sorted(file.stem for file in folder().glob("*.toml"))


def world(dataset: str, scale: str) -> Path:
    """Return the config of a data set's world at a scale.

    >>> world("cifar10", "small").name
    'cifar10-small.toml'
    """
    if dataset not in TITLES:
        raise ConfigError(f"--dataset {dataset}: must be one of {', '.join(TITLES)}")
    if scale not in SCALES:
        raise ConfigError(f"--scale {scale}: must be one of {', '.join(SCALES)}")
    found = folder() / "worlds" / f"{dataset}-{scale}.toml"
    if not found.is_file():
        there = [one for one in SCALES if (found.parent / f"{dataset}-{one}.toml").is_file()]
        raise ConfigError(f"--scale {scale}: there is no such world of {dataset}, only {' and '.join(there)}")
    return found


@functools.cache
def read(name: str) -> Experiment:
    """Read an experiment by its name, or from a file of one's own.

    >>> list(read("table4").rows)[:3]
    ['pushcen', 'no-regulariser', 'no-buffer']
    >>> read("table8")
    Traceback (most recent call last):
    pushcen.errors.ConfigError: table8: no such experiment; there are bytes, changes, field, lean, ...
    """
    path = Path(name) if name.endswith(".toml") else folder() / f"{name}.toml"
    try:
        found = Experiment.model_validate(_toml(path, name) | {"name": path.stem})
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    rows = found.rows or (read(found.rows_of).rows if found.rows_of else {})
    if not rows:
        raise ConfigError(f"{path}: must have rows, or rows_of")
    for key, row in rows.items():
        if row.base and row.base not in rows:
            raise ConfigError(f"{path}: rows.{key}.base = {row.base!r}: must be one of {', '.join(rows)}")
    named = {key: row.model_copy(update={"name": key, "base": row.base or found.base}) for key, row in rows.items()}
    return found.model_copy(update={"rows": named})


def _rules(name: str) -> Settings:
    return _toml(folder() / "rules" / f"{name}.toml", f"rules = {name!r}") if name else {}


def _toml(path: Path, name: str) -> Settings:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such experiment; there are {', '.join(names())}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
