"""A paper's table: methods down, alphas across, mean ± SD over seeds, the difference to a base, the best in bold."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pushcen.analysis.crossing import METHOD, Crossing, cross
from pushcen.analysis.quantities import Quantity, quantity
from pushcen.analysis.run_tables import caveats
from pushcen.analysis.statistics import FEWEST, Interval, best_set, flip_test, holm, interval, needed, paired_by, sd
from pushcen.analysis.table import Column, Table
from pushcen.analysis.targets import costs, target_column, target_note
from pushcen.runs import Run

_NAMED = 4  # cells that a note names, of those that lack seeds
Scores = Mapping[int, float]
"""A figure by seed."""


@dataclass(frozen=True)
class Cell:
    """A figure of one row at one point, over seeds; its difference to the base; whether it may be the best there."""

    values: Scores
    difference: Interval | None
    best: bool

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values.values())

    @property
    def sd(self) -> float | None:
        """The standard deviation over seeds; None for one."""
        return sd(list(self.values.values())) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Overall:
    """The difference of a row to the base over all points that both have: a seed's mean over them is one sample."""

    difference: Interval
    points: int
    """How many points these are."""
    p: float | None = None
    """By flips of whole seeds, corrected by Holm's method for there being several rows; None below six seeds."""
    exploratory: float | None = None
    """By flips of every seed at every point, as if these were independent, which they are not: no evidence, and only in
    CSV and data frames. Likewise corrected."""


def crossed(
    runs: Sequence[Run],
    rows: str | Sequence[str] = METHOD,
    columns: str | Sequence[str] = (),
    base: str = "",
    figure: str = "",
    targets: Sequence[float] = (),
) -> Table:
    """Return a table of runs: `rows` down, `columns` across (the method, or keys of the config), seeds in each cell.

    With a `base`, which is one of the rows, there is also each row's difference to it, seed by seed at the same point.
    `figure` is another figure than the runs' metric, `targets` are values of the metric to be reached.
    """
    return crossed_table(cross(runs, rows, columns), base, figure, targets)


def crossed_table(crossing: Crossing, base: str = "", figure: str = "", targets: Sequence[float] = ()) -> Table:
    """Return the table of runs that are in rows and columns already."""
    runs = [run for cell in crossing.cells.values() for run in cell.values()]
    shown, measure = quantity(runs, figure), runs[0].measure
    for target in targets:
        measure.check_target(target)
    against = crossing.row(base) if base.strip() else None
    scores = [[_scores(crossing.runs(row, at), shown.name) for at in _points(crossing)] for row in _rows(crossing)]
    best = [
        _best({row: scores[row][at] for row in _rows(crossing) if scores[row][at]}, shown) for at in _points(crossing)
    ]
    whole = {} if against is None else _overall(scores, against)
    table: list[list[Any]] = []
    for row, label in enumerate(crossing.rows):
        cells: list[Any] = [label]
        for at, values in enumerate(scores[row]):
            difference = None if against in (None, row) else paired_by(values, scores[against][at])
            cells.append(Cell(values, difference, row in best[at]) if values else None)
        cells += [] if against is None else [whole.get(row)]
        for target in targets:
            cells += [costs(list(crossing.runs(row, at).values()), target) for at in _points(crossing)]
        table.append(cells)
    made = [Column(crossing.title, left=True), *(_column(shown, point) for point in crossing.points)]
    if against is not None:
        made.append(_overall_column(shown, crossing.rows[against], len(crossing.points)))
    made += [target_column(target, measure, point) for target in targets for point in crossing.points]
    notes = _notes(crossing, scores, shown, against, whole)
    notes += [target_note(targets, measure)] if targets else []
    labelled = ((_where(crossing, *at), list(cell.values())) for at, cell in crossing.cells.items())
    return Table("", made, table, [*notes, *crossing.notes, *caveats(labelled)])


def _overall(scores: Sequence[Sequence[Scores]], base: int) -> dict[int, Overall]:
    """Return each row's difference to the base over all points that both have, with one test each.

    Only seeds that both have at all these points count, so that every sample is of the same points.
    """
    found: dict[int, Overall] = {}
    single: dict[int, list[float]] = {}
    whole: dict[int, list[float]] = {}
    for row, own in enumerate(scores):
        pairs = [(mine, its) for mine, its in zip(own, scores[base], strict=True) if mine.keys() & its.keys()]
        if row == base or not pairs:
            continue
        seeds = [seed for seed in pairs[0][0] if all(seed in mine and seed in its for mine, its in pairs)]
        if seeds:
            differences = [[mine[seed] - its[seed] for mine, its in pairs] for seed in seeds]
            whole[row] = [statistics.fmean(one) for one in differences]
            single[row] = [value for one in differences for value in one]
            found[row] = Overall(interval(whole[row]), len(pairs))
    p, exploratory = _tested(whole), _tested(single) if len(scores[base]) > 1 else {}
    return {row: replace(one, p=p.get(row), exploratory=exploratory.get(row)) for row, one in found.items()}


def _tested(samples: Mapping[int, Sequence[float]]) -> dict[int, float]:
    return holm({row: p for row, values in samples.items() if (p := flip_test(values)) is not None})


def _column(shown: Quantity, point: str) -> Column:
    name = ", ".join(filter(None, (shown.name, point)))
    parts: dict[str, Callable[[Cell], Any]] = {
        "mean": lambda cell: cell.mean,
        "SD": lambda cell: cell.sd,
        "n": lambda cell: len(cell.values),
        "difference": lambda cell: cell.difference and cell.difference.mean,
        "low": lambda cell: cell.difference and cell.difference.low,
        "high": lambda cell: cell.difference and cell.difference.high,
        "best": lambda cell: cell.best,
    }
    return Column(
        point or shown.heading,
        partial(_show, shown),
        group=shown.heading if point else "",
        strong=lambda cell: cell is not None and cell.best,
        parts={f"{name}, {part}": partial(_of, number) for part, number in parts.items()},
    )


def _overall_column(shown: Quantity, base: str, points: int) -> Column:
    name = f"{shown.name} to {base}"
    parts: dict[str, Callable[[Overall], Any]] = {
        "difference": lambda whole: whole.difference.mean,
        "low": lambda whole: whole.difference.low,
        "high": lambda whole: whole.difference.high,
        "seeds": lambda whole: whole.difference.runs,
        "points": lambda whole: whole.points,
        "p (Holm)": lambda whole: whole.p,
        "p, exploratory (Holm)": lambda whole: whole.exploratory,
    }
    return Column(
        f"to {base}" + (", all points" if points > 1 else ""),
        partial(_show_overall, shown, points),
        parts={f"{name}, {part}": partial(_of, number) for part, number in parts.items()},
    )


def _of(number: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else number(value)


def _show(shown: Quantity, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    value = shown.spread(cell.mean, cell.sd)
    return f"{value}\n{_interval(shown, cell.difference)}" if cell.difference else value


def _show_overall(shown: Quantity, points: int, whole: Overall | None) -> str:
    if whole is None:
        return "-"
    p = "" if whole.p is None else f"p = {whole.p:.2g}"
    lacking = "" if whole.points == points else f"{whole.points} of {points} points"
    return "\n".join(filter(None, (_interval(shown, whole.difference), ", ".join(filter(None, (p, lacking))))))


def _interval(shown: Quantity, found: Interval) -> str:
    if found.low is None:
        return shown.show(found.mean, "+")
    return f"{shown.show(found.mean, '+')} [{shown.show(found.low, '+')}, {shown.show(found.high, '+')}]"


def _scores(runs: Mapping[int, Run], figure: str) -> Scores:
    return {seed: value for seed, run in runs.items() if (value := run.number(figure)) is not None}


def _best(scores: Mapping[int, Scores], shown: Quantity) -> set[int]:
    if shown.higher_is_better is None or len(scores) < 2:
        return set()
    return best_set(scores, higher=shown.higher_is_better)


def _rows(crossing: Crossing) -> range:
    return range(len(crossing.rows))


def _points(crossing: Crossing) -> range:
    return range(len(crossing.points))


def _where(crossing: Crossing, row: int, point: int) -> str:
    return " at ".join(filter(None, (crossing.rows[row], crossing.points[point])))


def _notes(
    crossing: Crossing,
    scores: Sequence[Sequence[Scores]],
    shown: Quantity,
    base: int | None,
    whole: Mapping[int, Overall],
) -> list[str]:
    """Return what the table means, how little it shows, and what is missing in it."""
    most, all_seeds = max(len(values) for row in scores for values in row), len(crossing.seeds)
    what = shown.heading
    if shown.measure and shown.name == shown.measure.name:
        what += ": each client's own test data at the end, mean over clients"
    notes = [f"{what}; then mean ± standard deviation (SD) over {most} seeds." if most > 1 else f"{what}; one seed."]
    if base is not None:
        notes.append(
            f"Below it: the difference to {crossing.rows[base]} at the same point, paired by seed (same data, join "
            "times, first weights), with its 95 % interval by Student's t over seeds, not corrected for their number."
        )
    if shown.higher_is_better is not None and most > 1:
        notes.append(
            "Bold: all that may be the best there: their paired 95 % interval to the best mean contains 0, if only "
            "because it is wide."
        )
    if base is not None and any(one.p is not None for one in whole.values()):
        notes.append(
            "p: one test a row over all points, by flips of the signs of whole seeds; Holm's correction over rows."
        )
    notes += _few(most)
    lacking: dict[str, list[str]] = {}
    for row, own in enumerate(scores):
        for at, values in enumerate(own):
            if len(values) < all_seeds:
                lacking.setdefault(f"{len(values)} of {all_seeds} seeds", []).append(_where(crossing, row, at))
    for count, cells in sorted(lacking.items()):
        more = f" and {len(cells) - _NAMED} more cells" if len(cells) > _NAMED else ""
        notes.append(f"{count}: {'; '.join(cells[:_NAMED])}{more}.")
    return notes


def _few(seeds: int) -> list[str]:
    if seeds < 2:
        return ["One seed: there is no telling a difference from noise, and nothing is bold."]
    if seeds >= FEWEST:
        return []
    return [
        f"{seeds} seeds show little: only a difference of {needed(seeds):.1f} times its own SD over seeds has an "
        f"interval without 0; below {FEWEST} seeds there is no p-value."
    ]
