"""The table of the field: what clients' own models reach, what the mean of all models does, and what it took."""

from collections.abc import Sequence
from typing import Any

from pushcen.analysis.table import Column, Table
from pushcen.analysis.targets import costs, target_column, target_note
from pushcen.analysis.units import decimals, half, points, size
from pushcen.reproduce.experiment import Experiment
from pushcen.reproduce.results import Point, effect_of, measure_of, notes_of

_MEAN = (
    "mean of all models: by mass where a method's protocol has any, on each client's own test data (FedKD: students; "
    "SpaFL: thresholds, with each client's own weights)."
)


def field_table(experiment: Experiment, title: str, found: Sequence[Point], target: float | None) -> Table:
    """Return a table of both accuracies and of bytes, the best first where all is compared with one base."""
    by_alpha, measure = len({point.alpha for point in found}) > 1, measure_of(found)
    at = {(point.row.name, point.alpha): point for point in found}
    shared, waits = f"reference_own_{measure.name}", any(point.mean("waiting_share") is not None for point in found)
    rows = []
    for point in sorted(found, key=lambda p: (p.alpha, -(p.mean(measure.name) or 0) if experiment.base else 0)):
        effect = effect_of(point, at.get((point.row.base, point.alpha)), lambda p: p.values(measure.name))
        group = point.group() if point.runs else None
        cells: list[Any] = [point.alpha] if by_alpha else []
        cells += [point.row.label, len(point.runs), point.mean(measure.name), point.spread(measure.name)]
        cells += [effect and effect.mean, effect and effect.half] if experiment.base else []
        cells += [point.mean(shared), point.spread(shared)]
        cells += [point.mean("waiting_share")] if waits else []
        cells += [group and group.mean("bytes_per_push"), group and group.mean("bytes_sent")]
        rows.append([*cells, costs(list(point.runs.values()), target)] if target else cells)
    columns = [Column("alpha")] if by_alpha else []
    columns += [
        Column("row", left=True),
        Column("seeds"),
        Column(measure.heading, decimals(1)),
        Column("±", decimals(1)),
    ]
    if experiment.base:
        columns += [Column(f"to {experiment.rows[experiment.base].label}", points), Column("95 % interval", half)]
    columns += [Column("mean of all models %", decimals(1)), Column("± ", decimals(1))]
    columns += [Column("time spent waiting %", decimals(0))] if waits else []
    columns += [Column("a push", size), Column("sent in all", size)]
    notes = [*notes_of(found, effects=bool(experiment.base)), _MEAN]
    if target:
        columns.append(target_column(target, measure))
        notes.append(target_note([target], measure))
    return Table(f"{experiment.title}: {title}", columns, rows, notes)
