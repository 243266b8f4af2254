"""From an experiment to its runs: which config, which seed, which folder; and which of them are there already."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pushcen.analysis.table import Column, Table
from pushcen.config import Config, load_config
from pushcen.folder import CONFIG, METRICS, SUMMARY
from pushcen.reproduce.experiment import Experiment, Row, world
from pushcen.runs import RunJob, RunStore
from pushcen.simulation import ExecutorOptions


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


def jobs_of(runs: Sequence[Planned], store: RunStore, executor: ExecutorOptions | None = None) -> list[RunJob]:
    """Return what to carry out, on this executor, and where."""
    kind = executor or ExecutorOptions(workers=1)
    return [RunJob(run.name, replace(run.config, executor=kind), store.folder(run.name, run.config)) for run in runs]


def collect(runs: Sequence[Planned], store: RunStore, folder: Path) -> int:
    """Copy config, metrics and summary of finished runs into `folder`, without those it has; return how many."""
    there = RunStore(folder)
    copied = 0
    for planned in runs:
        run = store.find(planned.config)
        if run is None or not run.finished or there.find(planned.config) is not None:
            continue
        into = there.folder(planned.name, planned.config)
        into.mkdir(parents=True)
        for name in (CONFIG, METRICS, SUMMARY):
            shutil.copyfile(run.folder / name, into / name)
        copied += 1
    return copied


def _config(row: Row, alpha: float, seed: int, dataset: str, scale: str, settings: Mapping[str, Any]) -> Config:
    return load_config(world(dataset, scale), row.at(scale) | {"data.alpha": alpha, "seed": seed} | dict(settings))


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
