"""Runs that differ in their seeds only: they become one curve with a band, one mean with its interval."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pushcen.analysis.labels import labels, title
from pushcen.analysis.statistics import sd
from pushcen.analysis.style import Style, styles
from pushcen.errors import RunError
from pushcen.measure import ACCURACY, Measure
from pushcen.runs import Run


@dataclass(frozen=True)
class Band:
    """A figure over time: its mean over the runs of a group, and the standard deviation over them (0 for one run)."""

    times: list[float]
    mean: list[float]
    sd: list[float]

    @property
    def low(self) -> list[float]:
        """The lower edge."""
        return [mean - sd for mean, sd in zip(self.mean, self.sd, strict=True)]

    @property
    def high(self) -> list[float]:
        """The upper edge."""
        return [mean + sd for mean, sd in zip(self.mean, self.sd, strict=True)]


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds only, and what to call them."""

    label: str
    runs: tuple[Run, ...]

    @property
    def method(self) -> str:
        """The name of their method."""
        return self.runs[0].method

    @property
    def measure(self) -> Measure:
        """What they are measured by."""
        return self.runs[0].measure

    @property
    def title(self) -> str:
        """The title of their method."""
        return title(self.method)

    def band(self, name: str) -> Band:
        """Return the mean curve of a figure and its spread, at the times that all runs have."""
        curves = [dict(zip(*run.series(name), strict=True)) for run in self.runs]
        times = sorted(set.intersection(*(set(curve) for curve in curves)))
        values = [[curve[time] for curve in curves] for time in times]
        return Band(times, [statistics.fmean(v) for v in values], [sd(v) for v in values])

    def numbers(self, name: str) -> list[float]:
        """Return a figure of every run that has it."""
        return [value for run in self.runs if (value := run.number(name)) is not None]

    def mean(self, name: str) -> float | None:
        """Return a figure's mean over the runs that have it, if any does."""
        values = self.numbers(name)
        return statistics.fmean(values) if values else None


def check_metric(runs: Sequence[Run]) -> None:
    """Refuse runs that are measured by different metrics: they have no table and no figure in common."""
    if other := next((run for run in runs if run.measure.name != runs[0].measure.name), None):
        raise RunError(
            f"{runs[0].folder} is measured by {runs[0].measure.title}, {other.folder} by {other.measure.title}: runs "
            "that are shown together must have the same first metric"
        )


def group(runs: Sequence[Run]) -> list[Group]:
    """Return groups of runs that differ in their seeds only, in the order given, labelled by what sets them apart."""
    check_metric(runs)
    found: dict[frozenset[Any], list[Run]] = {}
    settings: dict[frozenset[Any], dict[str, Any]] = {}
    for run in runs:
        own = {key: value for key, value in run.identity().items() if key != "seed"}
        key = frozenset(own.items())
        found.setdefault(key, []).append(run)
        settings[key] = own
    first = [members[0] for members in found.values()]
    named = labels([run.method for run in first], list(settings.values()))
    return [Group(label, tuple(members)) for label, members in zip(named, found.values(), strict=True)]


def measure_of(groups: Sequence[Group]) -> Measure:
    """Return what groups are measured by, all alike; accuracy, if there are none."""
    return groups[0].measure if groups else ACCURACY


def looks(groups: Sequence[Group]) -> list[Style]:
    """Return the look of each group's curve."""
    sections = [group.runs[0].config.get("method") for group in groups]
    paper = [at for at, own in enumerate(sections) if isinstance(own, dict) and own.get("profile") == "paper"]
    return styles([group.method for group in groups], paper)
