"""From an experiment to its runs: which config, which seed, which folder; and which of them are there already."""

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pushcen.analysis.table import Column, Table
from pushcen.config import Config, load_config
from pushcen.errors import PushcenError
from pushcen.folder import CONFIG, METRICS, SUMMARY
from pushcen.reproduce.experiment import Experiment, Row, world
from pushcen.runs import Run, identity_in, numbered


@dataclass(frozen=True)
class Planned:
    """One run of an experiment."""

    row: Row
    alpha: float
    config: Config

    @property
    def name(self) -> str:
        """A name for people; which run it is, its config says."""
        return f"{self.row.name}-alpha{self.alpha:g}-seed{self.config.seed}"


def plan(
    experiment: Experiment, dataset: str, scale: str, seeds: int = 1, settings: Mapping[str, Any] | None = None
) -> list[Planned]:
    """Return the runs of an experiment, seed by seed, so that the first to be finished make a whole table.

    >>> from pushcen.reproduce.experiment import read
    >>> [run.name for run in plan(read("table1"), "cifar10", "small", seeds=2)][::18]
    ['independent-alpha0.1-seed0', 'independent-alpha0.1-seed1']
    """
    base = load_config(world(dataset, scale))
    alphas = experiment.alphas or [base.data.alpha or 0.0]
    return [
        Planned(row, alpha, _config(row, alpha, seed, dataset, scale, settings or {}))
        for seed in range(base.seed, base.seed + seeds)
        for row in experiment.rows.values()
        for alpha in alphas
    ]


class RunStore:
    """Run folders by what their configs say: the same run serves every table that has it, under whatever name.

    New runs go below `root`; finished ones are also looked for below `also`.
    """

    def __init__(self, root: Path, also: Sequence[Path] = ()) -> None:
        self.root = root
        self._found: dict[frozenset[Any], Path] = {}
        for folder in _folders([root, *also]):
            with contextlib.suppress(PushcenError):  # what is no run is not looked for
                self._found.setdefault(frozenset(identity_in(folder).items()), folder)

    def find(self, config: Config) -> Run | None:
        """Return the run of a config, finished or not, if it is there."""
        folder = self._found.get(frozenset(config.identity().items()))
        return None if folder is None else Run.open(folder)

    def folder(self, planned: Planned) -> Path:
        """Return where a run is, or is to be."""
        key = frozenset(planned.config.identity().items())
        if key not in self._found:
            taken, names = set(self._found.values()), numbered(self.root, planned.name)
            self._found[key] = next(folder for folder in names if folder not in taken and not folder.exists())
        return self._found[key]


def collect(runs: Sequence[Planned], store: RunStore, folder: Path) -> int:
    """Copy config, metrics and summary of finished runs into `folder`, without those it has; return how many."""
    there = RunStore(folder)
    copied = 0
    for planned in runs:
        run = store.find(planned.config)
        if run is None or not run.finished or there.find(planned.config) is not None:
            continue
        into = there.folder(planned)
        into.mkdir(parents=True)
        for name in (CONFIG, METRICS, SUMMARY):
            shutil.copyfile(run.folder / name, into / name)
        copied += 1
    return copied


def _config(row: Row, alpha: float, seed: int, dataset: str, scale: str, settings: Mapping[str, Any]) -> Config:
    return load_config(world(dataset, scale), row.at(scale) | {"data.alpha": alpha, "seed": seed} | dict(settings))


def _folders(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        yield from sorted(file.parent for file in root.glob(f"**/{CONFIG}"))


def describe(experiment: Experiment, runs: Sequence[Planned], store: RunStore, where: str) -> Table:
    """Return a table of what an experiment would run, with nothing loaded and nothing trained."""
    rows: list[list[Any]] = []
    for planned in runs:
        found, config = store.find(planned.config), planned.config
        state = "-" if found is None else "finished" if found.finished else "begun"
        rows.append([planned.name, state, config.clients, config.horizon, steps(config)])
    columns = [Column("run", left=True), Column("state", left=True), Column("clients"), Column("horizon")]
    columns.append(Column("steps, about", "{:,}".format))
    to_do = sum(row[4] for row in rows if row[1] != "finished")
    note = f"{len(rows)} runs; {to_do:,} training steps to do, less what late clients miss"
    return Table(f"{experiment.title}: {where}", columns, rows, [note])


def steps(config: Config) -> int:
    """Return the optimiser steps of a run: a step takes the same pseudo-time for all clients, whatever their data.

    >>> steps(load_config(world("cifar10", "paper")))
    60000
    """
    return round(config.clients * config.horizon / config.compute.per_step)
