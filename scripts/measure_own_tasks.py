"""Run methods on three tasks that are not images, for docs/results.md: `python scripts/measure_own_tasks.py`.

`experiments/own/` has the tasks, the worlds, and `prepare.py`, which makes the data and comes first. What is finished
is not run again; what was interrupted goes on. Config, metrics and summary of each run go to `results/own-tasks/`;
`--table` only prints a table of what is there, `--choose` runs what the learning rates were chosen by.
"""

import argparse
import os
import shutil
from pathlib import Path

from pushcen.analysis.groups import Group
from pushcen.analysis.statistics import sd
from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import percent, size
from pushcen.config import load_config
from pushcen.folder import CONFIG, METRICS, SUMMARY
from pushcen.runs import Run, launch

ROOT = Path(__file__).parent.parent
WORLDS, RESULTS, RUNS = ROOT / "experiments" / "own", ROOT / "results" / "own-tasks", ROOT / "runs" / "own"
TASKS = {"table": "table, 6 sites", "text": "text, 20 clients", "lora": "LoRA, 10 clients"}
ROWS = {
    "pushcen": ("PushCen", {"method.name": "pushcen"}),
    "pushcen-no-mask": ("PushCen, no mask", {"method.name": "pushcen", "method.mask": False}),
    "pushcen-no-regulariser": ("PushCen, no regulariser", {"method.name": "pushcen", "method.strength": 0.0}),
    "pushcen-neither": (
        "PushCen, neither",
        {"method.name": "pushcen", "method.mask": False, "method.strength": 0.0},
    ),
    "push-sum": ("push-sum, dense", {"method.name": "push-sum"}),
    "pushcen-lean": ("PushCen lean", {"method.name": "pushcen-lean"}),
    "async-dfedavg": ("Async-DFedAvg", {"method.name": "async-dfedavg"}),
    "divshare": ("DivShare", {"method.name": "divshare"}),
    "independent": ("Independent", {"method.name": "independent"}),
}
SEEDS = (0, 1)
RATES, SEED_OF_RATES = (0.001, 0.003, 0.01, 0.03), 10


def planned(task, *, choose=False):
    """Return the configs of a task's runs by the names of their folders.

    The learning rate is chosen by what dense averaging reaches with a seed that no other run has.
    """
    if choose:
        by = ROWS["async-dfedavg"][1] | {"seed": SEED_OF_RATES}
        settings = {f"lr{rate:g}-seed{SEED_OF_RATES}": by | {"training.lr": rate} for rate in RATES}
    else:
        settings = {f"{name}-seed{seed}": row[1] | {"seed": seed} for seed in SEEDS for name, row in ROWS.items()}
    world = WORLDS / f"{task}.toml"
    return {name: load_config(world, some | {"executor.workers": 1}) for name, some in settings.items()}


def run(config, task, name):
    """Carry out a run, or go on with it, and keep its small files."""
    into, folder = RESULTS / task / name, RUNS / task / name
    if (into / SUMMARY).exists():
        return
    done = launch(config, folder)
    if done.finished:
        print(f"{task}, {name}: {percent(done.number('accuracy'))} %", flush=True)
        into.mkdir(parents=True)
        for file in (CONFIG, METRICS, SUMMARY):
            shutil.copyfile(folder / file, into / file)


def group(task, label, names):
    """Return those runs of a row that are there."""
    return Group(label, tuple(Run.open(RESULTS / task / one) for one in names if (RESULTS / task / one).exists()))


def methods_table():
    """Return what each method reaches and sends."""
    rows = []
    for task, title in TASKS.items():
        for name, (label, _) in ROWS.items():
            found = group(task, label, [f"{name}-seed{seed}" for seed in SEEDS])
            if found.runs:
                spread = sd(found.numbers("accuracy")) if len(found.runs) > 1 else None
                shown = map(found.mean, ("accuracy_sd", "delayed_best", "bytes_per_push", "bytes_sent"))
                rows.append([title, label, len(found.runs), found.mean("accuracy"), spread, *shown])
    shares = [Column(name, percent) for name in ("accuracy %", "± over seeds", "SD over clients", "joined late %")]
    sizes = [Column("a push", size), Column("sent in all", size)]
    return Table("", [Column("task", left=True), Column("method", left=True), Column("seeds"), *shares, *sizes], rows)


def rates_table():
    """Return what the learning rates were chosen by."""
    names = [f"lr{rate:g}-seed{SEED_OF_RATES}" for rate in RATES]
    rows = [[title, *(group(task, "", [name]).mean("accuracy") for name in names)] for task, title in TASKS.items()]
    return Table("", [Column("accuracy %", left=True), *(Column(f"lr = {rate:g}", percent) for rate in RATES)], rows)


TABLES = {"methods": methods_table, "rates": rates_table}


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--choose", action="store_true", help="run what the learning rates are chosen by")
    options.add_argument("--table", choices=TABLES, help="run nothing: print a table")
    options.add_argument("--task", choices=TASKS, action="append", help="only this task")
    given = options.parse_args()
    if given.table:
        print(TABLES[given.table]().to("markdown"))
        return
    os.chdir(ROOT)  # the paths of the worlds begin there
    for task in given.task or TASKS:
        for name, config in planned(task, choose=given.choose).items():
            run(config, task, name)


if __name__ == "__main__":
    main()
