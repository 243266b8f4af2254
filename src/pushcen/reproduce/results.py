"""Tables of what was run: mean and SD over seeds, the paper's own number beside it, and the difference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pushcen.analysis.groups import Group
from pushcen.analysis.run_tables import caveats
from pushcen.analysis.statistics import Interval, paired_by, sd
from pushcen.analysis.table import Column, Table
from pushcen.analysis.targets import costs, target_column, target_note
from pushcen.analysis.units import decimals, half, points, size
from pushcen.errors import RunError
from pushcen.measure import ACCURACY, Measure
from pushcen.reproduce import paper
from pushcen.reproduce.experiment import Experiment, Row
from pushcen.reproduce.plan import Planned
from pushcen.runs import Run, RunStore


@dataclass(frozen=True)
class Point:
    """A row at one alpha: its finished runs, by seed."""

    row: Row
    alpha: float
    runs: dict[int, Run]

    @property
    def measure(self) -> Measure:
        """What its runs are measured by."""
        return next((run.measure for run in self.runs.values()), ACCURACY)

    def values(self, figure: str) -> dict[int, float]:
        """Return a figure of each run that has it, by seed; shares in percent."""
        found = {seed: run.number(figure) for seed, run in self.runs.items()}
        return {seed: self.measure.scale * value for seed, value in found.items() if value is not None}

    def mean(self, figure: str) -> float | None:
        """Return a figure's mean over seeds, shares in percent."""
        values = list(self.values(figure).values())
        return sum(values) / len(values) if values else None

    def spread(self, figure: str) -> float | None:
        """Return a figure's standard deviation over seeds; None for fewer than two."""
        values = list(self.values(figure).values())
        return sd(values) if len(values) > 1 else None

    def late(self) -> dict[tuple[int, int], float]:
        """Return the best accuracy of each client that joined late, in percent, by seed and client."""
        return {
            (seed, client): run.measure.scale * best
            for seed, run in self.runs.items()
            for client in run.joins()
            if (best := run.measure.best(run.client_series(client)[1])) is not None
        }

    def group(self) -> Group:
        """Return its runs as a group, for figures and means."""
        return Group(self.row.label, tuple(self.runs.values()))


def gather(runs: Sequence[Planned], store: RunStore) -> list[Point]:
    """Return the finished runs, with those in one point that differ in their seeds only."""
    found: dict[tuple[str, float], Point] = {}
    for planned in runs:
        point = found.setdefault((planned.row.name, planned.alpha), Point(planned.row, planned.alpha, {}))
        run = store.find(planned.config)
        if run is not None and run.finished:
            point.runs[planned.config.seed] = run
    return list(found.values())


def accuracy_table(experiment: Experiment, dataset: str, title: str, found: Sequence[Point]) -> Table:
    """Return a table of accuracies, ours and the paper's, with the difference of each row to its base in both."""
    by_alpha, effects = len(experiment.alphas) > 0, any(point.row.base for point in found)
    printed = any(point.row.paper for point in found)
    at = {(point.row.name, point.alpha): point for point in found}
    rows, measure = [], measure_of(found)
    for point in sorted(found, key=lambda p: p.alpha) if by_alpha else found:
        ours = point.mean(measure.name)
        cells: list[Any] = [point.alpha] if by_alpha else []
        cells += [point.row.label, len(point.runs), ours, point.spread(measure.name), point.mean(f"{measure.name}_sd")]
        if printed:
            theirs = paper.numbers(experiment.table, dataset, point.row.paper, point.alpha)
            cells += [*_first(theirs, 1), _minus(ours, _first(theirs, 1)[0])]
        if by_alpha:
            swapped = float(paper.SWAPPED.get(paper.column(point.alpha), 0))
            theirs = paper.numbers(experiment.table, dataset, point.row.paper, swapped)
            cells += [*_first(theirs, 1), _minus(ours, _first(theirs, 1)[0])]
        if effects:
            effect = effect_of(point, at.get((point.row.base, point.alpha)), lambda p: p.values(measure.name))
            cells += [effect and effect.mean, effect and effect.half]
            if printed:
                cells.append(_paper_effect(experiment, dataset, point.row))
        cells.append(point.group().mean("bytes_per_push") if point.runs else None)
        rows.append(cells)
    number = experiment.table.removeprefix("table")
    columns = [Column("alpha")] if by_alpha else []
    columns += [Column("row", left=True), Column("seeds"), Column(measure.heading, decimals(2))]
    columns += [Column("± over seeds", decimals(2)), Column("SD over clients", decimals(2))]
    if printed:
        columns += [Column(f"Table {number}, %", decimals(2)), Column("difference", points)]
    if by_alpha:
        columns += [Column(f"Table {number}, columns swapped", decimals(2)), Column("difference ", points)]
    if effects:
        columns += [Column("to its base", points), Column("95 % interval", half)]
        columns += [Column(f"to its base, Table {number}", points)] if printed else []
    columns.append(Column("a push", size))
    return Table(f"{experiment.title}: {title}", columns, rows, notes_of(found, effects))


def bytes_table(experiment: Experiment, title: str, found: Sequence[Point], target: float | None) -> Table:
    """Return a table of accuracies and of the bytes they took: in all, and until a target is held."""
    by_alpha = len(experiment.alphas) > 0
    at = {(point.row.name, point.alpha): point for point in found}
    rows, measure = [], measure_of(found)
    for point in sorted(found, key=lambda p: p.alpha) if by_alpha else found:
        effect = effect_of(point, at.get((point.row.base, point.alpha)), lambda p: p.values(measure.name))
        group = point.group() if point.runs else None
        cells: list[Any] = [point.alpha] if by_alpha else []
        cells += [point.row.label, len(point.runs), point.mean(measure.name), point.spread(measure.name)]
        cells += [effect and effect.mean, group and group.mean("bytes_per_push"), group and group.mean("bytes_sent")]
        cells.append(group and group.mean("traffic.reference_bytes"))
        rows.append([*cells, costs(list(point.runs.values()), target)] if target else cells)
    columns = [Column("alpha")] if by_alpha else []
    columns += [Column("row", left=True), Column("seeds"), Column(measure.heading, decimals(2))]
    columns += [Column("± over seeds", decimals(2)), Column("to its base", points), Column("a push", size)]
    columns += [Column("sent in all", size), Column("of it references", size)]
    notes = notes_of(found, effects=True)
    if target:
        columns.append(target_column(target, measure))
        notes.append(target_note([target], measure))
    return Table(f"{experiment.title}: {title}", columns, rows, notes)


def delayed_table(experiment: Experiment, dataset: str, title: str, found: Sequence[Point]) -> Table:
    """Return a table of clients that join late: the mean of each one's best accuracy, and both readings of its SD."""
    at = {point.row.name: point for point in found}
    rows: list[list[Any]] = []
    for point in found:
        ours, spread = point.mean("delayed_best"), point.mean("delayed_best_sd")
        theirs, their_sd = _first(paper.numbers(experiment.table, dataset, point.row.paper), 2)
        gain = effect_of(point, at.get(point.row.base), Point.late)
        rows.append(
            [
                point.row.label,
                sum(len(run.joins()) for run in point.runs.values()),
                ours,
                point.spread("delayed_best"),
                spread,
                None if spread is None else spread**2 / 100,
                theirs,
                their_sd,
                _minus(ours, theirs),
                gain and gain.mean,
                gain and gain.half,
                _paper_effect(experiment, dataset, point.row),
            ]
        )
    columns = [
        Column("row", left=True),
        Column("late clients"),
        Column("their best, mean %", decimals(2)),
        Column("± over seeds", decimals(2)),
        Column("SD over clients, points", decimals(2)),
        Column("100 x variance of shares", decimals(3)),
        Column("Table 5, %", decimals(2)),
        Column("Table 5, SD", decimals(3)),
        Column("difference", points),
        Column("gain over Independent", points),
        Column("95 % interval, over clients", half),
        Column("gain, Table 5", points),
    ]
    late = "The gain is each late client's over the same client in the base: same data, join time and first weights."
    note = (
        "Table 5's SD is too small for points over clients. A guess: it is 100 times the variance "
        "of shares: CIFAR-10's 0.36 to 0.94 would be 6.0 to 9.7 points, near Table 1's. Both readings are shown."
    )
    return Table(f"{experiment.title}: {title}", columns, rows, [*notes_of(found, effects=False), late, note])


def effect_of(point: Point, base: Point | None, values: Callable[[Point], dict[Any, float]]) -> Interval | None:
    """Return the mean difference to the base, pair by pair, if there are pairs."""
    if base is None or base.row.name == point.row.name:
        return None
    return paired_by(values(point), values(base))


def _paper_effect(experiment: Experiment, dataset: str, row: Row) -> float | None:
    base = experiment.rows.get(row.base)
    if base is None or base.name == row.name:
        return None
    mine, its = (paper.numbers(experiment.table, dataset, one.paper) for one in (row, base))
    return _minus(_first(mine, 1)[0], _first(its, 1)[0])


def notes_of(found: Sequence[Point], effects: bool) -> list[str]:
    """Return what has to be said below any table of accuracies."""
    seeds = {len(point.runs) for point in found}
    measure = measure_of(found)
    what = "accuracy: top-1" if measure == ACCURACY else f"{measure.title}, {measure.direction}:"
    notes = [f"{what} on each client's own test data at the end, mean over clients; then mean over seeds."]
    if effects:
        notes.append("Differences to a base are paired by seed: same data, same join times, same first weights.")
    if seeds <= {0, 1}:
        notes.append("One seed: there is no telling a small difference from noise.")
    if missing := [f"{point.row.label} ({point.alpha:g})" for point in found if not point.runs]:
        notes.append(f"Not run: {', '.join(missing)}.")
    several = len({point.alpha for point in found}) > 1
    labels = [f"{point.row.label} ({point.alpha:g})" if several else point.row.label for point in found]
    return notes + caveats((label, list(point.runs.values())) for label, point in zip(labels, found, strict=True))


def measure_of(found: Sequence[Point]) -> Measure:
    """Return what all runs are measured by, which must be the same."""
    measures = {run.measure for point in found for run in point.runs.values()}
    if len({measure.name for measure in measures}) > 1:
        raise RunError(f"the runs are measured by {', '.join(sorted(m.name for m in measures))}: must be by one metric")
    return next(iter(measures), ACCURACY)


def _first(values: Sequence[float], count: int) -> list[float | None]:
    return [*values, *[None] * count][:count]


def _minus(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours - theirs
