"""What it took until a target was held at two evaluations in a row; seeds that did not reach it are never left out.

A run that ended before it reached the target needed more than it had spent by then: that is a lower bound, and what is
said of several seeds is either true whatever the others would have needed, or marked as a bound.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pushcen.analysis.table import Column
from pushcen.analysis.units import size
from pushcen.folder import REAL, number
from pushcen.measure import Measure
from pushcen.runs import Run

Statistic = Callable[[Sequence[float]], float]


class Spent(NamedTuple):
    """What a run had spent by some evaluation; None is what it does not tell."""

    bytes_sent: float | None
    steps: float | None
    """Compute events."""
    time: float
    """Pseudo-time; of a real network, seconds."""
    seconds: float | None
    """On the clock, since all clients were built; a run that was resumed has not noted them."""


def reached(run: Run, target: float) -> Spent | None:
    """Return what a run had spent at the first of two evaluations in a row that hold the target, if there are two.

    The target is as tables show the metric: 60 for 60 %.
    """
    at = run.measure.held(target, [number(row, run.measure.name) for row in run.rows])
    return None if at is None else _spent(run, at)


@dataclass(frozen=True)
class Costs:
    """What each seed had spent when it reached a target, or, if it did not, in all."""

    spent: tuple[Spent, ...]
    """Of those that reached it."""
    bounds: tuple[Spent, ...]
    """Of those that did not: less than what they would have needed."""

    @property
    def reached(self) -> int:
        """How many seeds reached it."""
        return len(self.spent)

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.spent) + len(self.bounds)

    def median(self, name: str) -> tuple[float, bool] | None:
        """Return the median over all seeds, and whether it is known, or more than that; None if it was not measured."""
        return self._statistic(name, statistics.median)

    def lowest(self, name: str) -> tuple[float, bool] | None:
        """Return the lowest of all seeds, likewise."""
        return self._statistic(name, min)

    def highest(self, name: str) -> tuple[float, bool] | None:
        """Return the highest of all seeds, likewise."""
        return self._statistic(name, max)

    def _statistic(self, name: str, statistic: Statistic) -> tuple[float, bool] | None:
        known = [value for one in self.spent if (value := getattr(one, name)) is not None]
        bounds = [value for one in self.bounds if (value := getattr(one, name)) is not None]
        if not self.seeds or len(known) + len(bounds) < self.seeds:
            return None
        least = statistic([*known, *bounds])
        return least, least == statistic([*known, *[math.inf] * len(bounds)])


def costs(runs: Sequence[Run], target: float) -> Costs:
    """Return what it took runs that differ in their seeds to reach a target."""
    found = [(run, reached(run, target)) for run in runs]
    return Costs(
        tuple(spent for _, spent in found if spent is not None),
        tuple(_spent(run, -1) for run, spent in found if spent is None),
    )


def goal(target: float, measure: Measure) -> str:
    """Return a target as people read it.

    >>> from pushcen.measure import ACCURACY
    >>> goal(60, ACCURACY), goal(0.4, Measure("rmse"))
    ('60 %', '0.4')
    """
    return f"{target:g}{' %' if measure.percent else ''}"


def target_column(target: float, measure: Measure, at: str = "") -> Column:
    """Return a column of `Costs` until a target; several points have one each."""
    title = f"until {goal(target, measure)}"
    name = ", ".join(filter(None, (title, at)))
    parts: dict[str, Callable[[Costs | None], float | None]] = {
        f"{name}, reached": lambda found: None if found is None else found.reached,
        f"{name}, seeds": lambda found: None if found is None else found.seeds,
    }
    for figure in Spent._fields:
        for statistic in ("median", "lowest", "highest"):
            parts[f"{name}, {figure}, {statistic}"] = partial(_known, figure, statistic)
    return Column(at or title, _show, group=title if at else "", parts=parts)


def target_note(targets: Sequence[float], measure: Measure) -> str:
    """Return what the columns of targets mean."""
    goals = " or ".join(goal(target, measure) for target in targets)
    return (
        f"until {goals}: what all clients together had sent, and the pseudo-time T, at the first of two evaluations in "
        "a row that hold it: the range over seeds, from three seeds on after the median; how many seeds reached it. "
        "One that did not counts as more (>) than it spent in all."
    )


def _show(found: Costs | None) -> str:
    if found is None or not found.seeds:
        return "-"
    count = f"{found.reached} of {found.seeds}"
    if not found.reached:
        return f"not reached\n{count}"
    when = _range(found, "time", "{:g}".format)
    shown = f"{_range(found, 'bytes_sent', size)}\nT {when if when.startswith('>') else f'= {when}'}"
    return shown if found.seeds == 1 else f"{shown}, {count}"


def _range(found: Costs, name: str, form: Callable[[float], str]) -> str:
    """Return the one value, the range of two, or the median and the range of several."""

    def shown(value: tuple[float, bool] | None) -> str:
        return "-" if value is None else f"{'' if value[1] else '> '}{form(value[0])}"

    low, middle, high = (shown(one(name)) for one in (found.lowest, found.median, found.highest))
    if low == high:
        return middle
    return f"{low} to {high}" if found.seeds == 2 else f"{middle} ({low} to {high})"


def _known(figure: str, statistic: str, found: Costs | None) -> float | None:
    value = getattr(found, statistic)(figure) if found is not None else None
    return value[0] if value is not None and value[1] else None


def _spent(run: Run, at: int) -> Spent:
    """Return what a run had spent by one of its rows."""
    row = run.rows[at] if run.rows else {}
    time = number(row, "time") or 0.0
    return Spent(number(row, "bytes_sent"), number(row, "steps"), time, _seconds(run, at, time))


def _seconds(run: Run, at: int, time: float) -> float | None:
    """Return the seconds on the clock until a row was there, if the run has noted them for all its rows."""
    summary = run.summary or {}
    if summary.get("world") == REAL:
        return time
    times = summary.get("times")
    noted = times.get("rows") if isinstance(times, Mapping) else None
    if not isinstance(noted, list) or len(noted) != len(run.rows) or not run.rows:
        return None
    return number({"seconds": noted[at]}, "seconds")
