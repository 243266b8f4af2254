"""Which table an experiment's runs are shown in."""

from collections.abc import Sequence

from pushcen.analysis.table import Table
from pushcen.reproduce.experiment import TITLES, Experiment
from pushcen.reproduce.field import field_table
from pushcen.reproduce.results import Point, accuracy_table, bytes_table, delayed_table


def table(experiment: Experiment, dataset: str, scale: str, found: Sequence[Point]) -> Table:
    """Return an experiment's table of the runs that are there."""
    title, target = f"{TITLES[dataset]}, {scale} scale", experiment.target.get(f"{dataset}-{scale}")
    if experiment.shows in ("bytes", "field"):
        make = bytes_table if experiment.shows == "bytes" else field_table
        return make(experiment, title, found, target)
    return (delayed_table if experiment.shows == "delayed" else accuracy_table)(experiment, dataset, title, found)
