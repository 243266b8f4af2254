"""The tables that commands print and reports hold, from groups of runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pushcen.analysis.groups import Group, sd
from pushcen.analysis.stats import Interval, interval, paired
from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import duration, flops, number, percent, size
from pushcen.runs import Run


def comparison(groups: Sequence[Group], title: str = "") -> Table:
    """Put groups side by side: what they reached, what they sent, what it cost."""
    columns = [
        Column("method", left=True),
        Column("accuracy %", percent),
        Column("SD", percent),
        Column("worst tenth %", percent),
        Column("delayed %", percent),
        Column("a push", size),
        Column("sent", size),
        Column("FLOPs", flops),
        Column("events", number),
        Column("time", duration),
    ]
    names = ["accuracy", "accuracy_sd", "accuracy_worst_tenth", "delayed_best", "bytes_per_push", "bytes_sent"]
    names += ["flops", "steps", "times.run"]
    rows: list[list[Any]] = [[group.label, *map(group.mean, names)] for group in groups]
    notes = [
        "accuracy: top-1 on each client's own test data at the end, mean and SD over clients; delayed: mean over "
        "clients that joined late of each one's best; a push: bytes to all its receivers",
    ]
    seeds = max(len(group.runs) for group in groups) if groups else 0
    if seeds > 1:
        columns.insert(2, Column("± over seeds", percent))
        for row, group in zip(rows, groups, strict=True):
            row.insert(2, sd(group.numbers("accuracy")) if len(group.runs) > 1 else None)
        notes.append(f"mean over up to {seeds} seeds; ± is the standard deviation over them")
    unfinished = [group.label for group in groups if not all(run.finished for run in group.runs)]
    if unfinished:
        notes.append(f"not finished: {', '.join(unfinished)}")
    return Table(title, columns, rows, notes + caveats((group.label, group.runs) for group in groups))


def caveats(groups: Iterable[tuple[str, Sequence[Run]]]) -> list[str]:
    """Say of each run what its figures leave out: accuracies that are not finite; events that diverged, and why."""
    told: list[str] = []
    for group, runs in groups:
        for run in runs:
            label = f"{group}, seed {run.config.get('seed')}" if len(runs) > 1 else group
            left_out = run.number("accuracy_left_out")
            count = (
                f"{label}: clients not counted, since their accuracy is not finite: {left_out:g}" if left_out else ""
            )
            told += [count, _failures(label, run)]
    return [note for note in told if note]


def _failures(label: str, run: Run) -> str:
    found = (run.summary or {}).get("failures")
    clients = found.get("clients") if isinstance(found, Mapping) else None
    if not isinstance(clients, Mapping) or not clients:
        return ""
    told = []
    for name, client in clients.items():
        if isinstance(client, Mapping):
            given_up = "" if client.get("trains", True) else ", which no longer trains"
            told.append(f"{client.get('events')} of client {name}{given_up} ({client.get('why')})")
    more = f"; and those of {len(told) - 3} more clients" if len(told) > 3 else ""
    return f"{label}: compute events that failed: {'; '.join(told[:3])}{more}"


def sweep(groups: Mapping[str, Group], figure: str = "accuracy") -> Table:
    """Show a figure for every point of a sweep, and its difference to the first point on the same seeds."""
    columns = [
        Column("point", left=True),
        Column("seeds"),
        Column(f"{figure} %", percent),
        Column("95 % interval", _half),
        Column("difference", _signed),
        Column("its 95 % interval", _half),
        Column("sent", size),
    ]
    rows: list[list[Any]] = []
    base: dict[int, float] | None = None
    for label, group in groups.items():
        by_seed = {int(run.config.get("seed", 0)): v for run in group.runs if (v := run.number(figure)) is not None}
        if not by_seed:
            rows.append([label, 0, None, None, None, None, None])
            continue
        found = interval(list(by_seed.values()))
        difference: Interval | None = None
        if base is not None and (both := sorted(base.keys() & by_seed.keys())):
            difference = paired([by_seed[seed] for seed in both], [base[seed] for seed in both])
        base = by_seed if base is None else base
        rows.append(
            [
                label,
                found.runs,
                found.mean,
                found.half,
                difference.mean if difference else None,
                difference.half if difference else None,
                group.mean("bytes_sent"),
            ]
        )
    notes = ["difference: to the first point, paired by seed; intervals by Student's t over seeds"]
    return Table("", columns, rows, notes + caveats((label, group.runs) for label, group in groups.items()))


def _half(value: float | None) -> str:
    return "-" if value is None else f"± {100 * value:.1f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f}"
