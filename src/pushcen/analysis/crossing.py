"""Runs in rows and columns: methods down and alphas across, or any other keys of their configs; seeds in each cell."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pushcen.analysis.groups import Group, check_metric
from pushcen.analysis.labels import labels, option
from pushcen.config import differences
from pushcen.errors import OptionError, RunError
from pushcen.runs import Run

METHOD = "method"
"""In place of keys: the method, its settings, and whatever else sets runs apart but the keys of the other side."""
_SEED = "seed"


@dataclass(frozen=True)
class Crossing:
    """Which finished runs are in which cell, by seed. All runs of a cell differ in their seeds only."""

    title: str
    """What the rows are."""
    rows: tuple[str, ...]
    points: tuple[str, ...]
    """What the columns are called."""
    cells: Mapping[tuple[int, int], Mapping[int, Run]]
    seeds: frozenset[int]
    """All seeds that some run has."""
    names: tuple[frozenset[str], ...]
    """What else each row goes by: its method's name, or its value."""
    notes: tuple[str, ...] = ()

    def runs(self, row: int, point: int) -> Mapping[int, Run]:
        """Return the finished runs in a cell, by seed."""
        return self.cells.get((row, point), {})

    def row(self, name: str) -> int:
        """Return the row that is called `name`, in a table or a config."""
        wanted = name.strip().lower()
        exact = [at for at, label in enumerate(self.rows) if label.lower() == wanted]
        found = exact or [at for at, names in enumerate(self.names) if wanted in names]
        if len(found) != 1:
            which = f"may be {' or '.join(repr(self.rows[at]) for at in found)}" if found else "there is no such row"
            raise OptionError(f"base = {name!r}: {which}; rows are {', '.join(map(repr, self.rows))}")
        return found[0]

    def panels(self) -> dict[str, list[Group]]:
        """Return the rows of each column that has runs, as groups: what figures draw side by side."""
        found: dict[str, list[Group]] = {}
        for (row, point), runs in sorted(self.cells.items(), key=lambda cell: (cell[0][1], cell[0][0])):
            if runs:
                found.setdefault(self.points[point], []).append(Group(self.rows[row], tuple(runs.values())))
        return found


def cross(runs: Sequence[Run], rows: str | Sequence[str] = METHOD, columns: str | Sequence[str] = ()) -> Crossing:
    """Return runs in rows and columns by keys of their configs; a note names those that are not finished."""
    check_metric(runs)
    if not any(run.finished for run in runs):
        raise RunError("no run is finished: there is nothing to show")
    down, across = _keys("rows", rows) or (METHOD,), _keys("columns", columns)
    identities = [run.identity() for run in runs]
    _check_keys(down, across, identities)
    sides = [_side(runs, identities, mine, other) for mine, other in ((down, across), (across, down))]
    (row_of, row_labels), (point_of, point_labels) = sides
    cells: dict[tuple[int, int], dict[int, Run]] = {}
    first: dict[tuple[int, int], dict[str, Any]] = {}
    notes: list[str] = []
    for run, own, row, point in zip(runs, identities, row_of, point_of, strict=True):
        at, settings = (row, point), {key: value for key, value in own.items() if key != _SEED}
        where = " at ".join(filter(None, (row_labels[row], point_labels[point])))
        if different := differences(settings, first.setdefault(at, settings)):
            if "method.name" in different:
                different = [METHOD, *(key for key in different if not key.startswith("method."))]
            raise OptionError(
                f"{where}: runs differ in {', '.join(different)}, too: name that in rows or columns, or show fewer runs"
            )
        if not run.finished:
            notes.append(f"{where}: {run.folder.name} is not finished, and left out")
        elif (other := cells.setdefault(at, {}).setdefault(own[_SEED], run)) is not run:
            notes.append(f"{where}: {run.folder} is the same run as {other.folder}, and left out")
    names = [
        {run.method.lower() for run, at in zip(runs, row_of, strict=True) if at == row}
        for row in range(len(row_labels))
    ]
    if len(down) == 1 and down[0] != METHOD:
        values = dict(zip(row_of, (own.get(down[0]) for own in identities), strict=True))
        names = [{str(values[row]).lower()} for row in range(len(row_labels))]
    seeds = frozenset(own[_SEED] for own in identities)
    return Crossing(", ".join(down), row_labels, point_labels, cells, seeds, tuple(map(frozenset, names)), tuple(notes))


def _keys(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return keys from a list, or from a text with commas."""
    found = tuple(key.strip() for key in (given.split(",") if isinstance(given, str) else given) if key.strip())
    if twice := [key for at, key in enumerate(found) if key in found[:at]]:
        raise OptionError(f"{name} = {twice[0]!r}: is named twice")
    return found


def _check_keys(down: Sequence[str], across: Sequence[str], identities: Sequence[Mapping[str, Any]]) -> None:
    if both := [key for key in down if key in across]:
        raise OptionError(f"columns = {both[0]!r}: must not be among the rows, too")
    values: dict[str, set[Any]] = {}
    for own in identities:
        for key, value in own.items():
            values.setdefault(key, set()).add(value)
    differ = ", ".join([METHOD, *sorted(key for key, some in values.items() if len(some) > 1 and key != _SEED)])
    for name, keys in (("rows", down), ("columns", across)):
        for key in keys:
            if key == _SEED:
                raise OptionError(f"{name} = {key!r}: seeds are what means are over; the runs differ in {differ}")
            if key != METHOD and key not in values:
                raise OptionError(f"{name} = {key!r}: no run has such a key; the runs differ in {differ}")


def _side(
    runs: Sequence[Run], identities: Sequence[Mapping[str, Any]], mine: Sequence[str], other: Sequence[str]
) -> tuple[list[int], tuple[str, ...]]:
    """Return the place of each run along one side, and the label of each place."""
    places: list[Hashable] = []
    for own in identities:
        all_else = {key: value for key, value in own.items() if key != _SEED and key not in other}
        places.append(frozenset(all_else.items()) if METHOD in mine else tuple(own.get(key) for key in mine))
    first = {place: at for at, place in reversed(list(enumerate(places)))}
    order = list(dict.fromkeys(places))
    if METHOD in mine:
        settings = [{k: v for k, v in identities[first[p]].items() if k != _SEED and k not in other} for p in order]
        shown = labels([runs[first[place]].method for place in order], settings)
    else:
        order = _in_order(order)
        shown = [
            ", ".join(_label(runs[first[place]].method, key, identities[first[place]].get(key)) for key in mine)
            for place in order
        ]
    at = {place: number for number, place in enumerate(order)}
    return [at[place] for place in places], tuple(shown)


def _label(method: str, key: str, value: Any) -> str:
    return (option(method, key, value) if value is not None else "") or f"{key} = {value}"


def _in_order(places: Sequence[Any]) -> list[Any]:
    """Return places sorted by those of their values that are all numbers, and else as they come."""
    ranks: list[dict[Any, float]] = []
    for values in zip(*places, strict=True):
        numbers = all(isinstance(value, int | float) for value in values)
        ranks.append({value: float(value) if numbers else at for at, value in reversed(list(enumerate(values)))})
    return sorted(places, key=lambda place: [rank[value] for rank, value in zip(ranks, place, strict=True)])
