"""The tables about runs that commands print and reports hold."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from pushcen.analysis.groups import Group, measure_of
from pushcen.analysis.quantities import Quantity, quantity
from pushcen.analysis.statistics import interval, paired_by, sd
from pushcen.analysis.table import Column, Table
from pushcen.analysis.targets import costs, target_column, target_note
from pushcen.analysis.units import duration, flops, number, size
from pushcen.config import Config
from pushcen.measure import ACCURACY
from pushcen.runs import Run
from pushcen.runs.forecast import Forecast

_TERMS = (  # the paper's symbol, what it is, where the summary has it, which meter measures it
    ("Y_tot", "mass destroyed, a share of what was founded", "meters.mass.mass_destroyed", "mass"),
    ("y_min", "the smallest mass that a client held", "meters.events.y_min", "events"),
    ("y_max", "the largest", "meters.events.y_max", "events"),
    ("gamma_t", "the active client's share of the mass, mean", "meters.events.gamma", "events"),
    ("gamma_min", "the same, smallest", "meters.events.gamma_min", "events"),
    ("c-bar", "the share of all mass that an event pushes, mean", "meters.events.c_bar", "events"),
    ("tau", "staleness in compute events, mean", "meters.events.tau", "events"),
    ("tau_max", "the same, largest", "meters.events.tau_max", "events"),
    ("Delta", "how far local training moves the weights, mean", "meters.events.drift", "events"),
    ("Delta_max", "the same, largest", "meters.events.drift_max", "events"),
    ("epsilon_c", "how far a message is from its model, mean", "meters.events.distortion", "events"),
    ("epsilon_c, max", "the same, largest", "meters.events.distortion_max", "events"),
    ("X_tot, compression", "shift by compression, summed", "meters.events.compression_shift_sum", "events"),
    ("X_tot, kept mass", "shift by kept mass, summed", "meters.kept.kept_shift_sum", "kept"),
    ("E_con", "consensus error at the end", "final.consensus_error", "reference"),
    ("|grad F|^2", "at the reference model, mean over time", "meters.gradient.gradient_norm2", "gradient"),
    ("F(w_0)", "the loss at the first look", "meters.gradient.first_objective", "gradient"),
    ("zeta^2", "how far clients' gradients are apart, largest", "meters.gradient.zeta2", "gradient"),
)


def comparison(groups: Sequence[Group], title: str = "", targets: Sequence[float] = ()) -> Table:
    """Return a table of groups side by side: what they reached, what they sent, what it cost, also until a target."""
    first = measure_of(groups)
    for target in targets:
        first.check_target(target)
    unit = " %" if first.percent else ""
    shown = {
        first.name: Column(first.heading, first.show),
        f"{first.name}_sd": Column("SD", first.show),
        f"{first.name}_worst_tenth": Column(f"worst tenth{unit}", first.show),
        "delayed_best": Column(f"delayed{unit}", first.show),
        **_other_figures(groups),
        "bytes_per_push": Column("a push", size),
        "bytes_sent": Column("sent", size),
        "flops": Column("FLOPs", flops),
        "steps": Column("events", number),
        "times.run": Column("time", duration),
    }
    columns = [Column("method", left=True), *shown.values()]
    rows: list[list[Any]] = [[group.label, *map(group.mean, shown)] for group in groups]
    what = "accuracy" if first == ACCURACY else f"{first.title}, {first.direction}:"
    notes = [
        f"{what} on each client's own test data at the end, mean and SD over clients; delayed: mean over "
        "clients that joined late of each one's best; a push: bytes to all its receivers",
    ]
    if any(name.endswith("_pooled") for name in shown):
        notes.append("pooled: over all clients' outputs together, each by its own model")
    seeds = max(len(group.runs) for group in groups) if groups else 0
    if seeds > 1:
        columns.insert(2, Column("± over seeds", first.show))
        for row, group in zip(rows, groups, strict=True):
            row.insert(2, sd(group.numbers(first.name)) if len(group.runs) > 1 else None)
        notes.append(f"mean over up to {seeds} seeds; ± is the standard deviation over them")
    if targets:
        columns += [target_column(target, first) for target in targets]
        rows = [[*row, *(costs(own.runs, target) for target in targets)] for row, own in zip(rows, groups, strict=True)]
        notes.append(target_note(targets, first))
    unfinished = [group.label for group in groups if not all(run.finished for run in group.runs)]
    if unfinished:
        notes.append(f"not finished: {', '.join(unfinished)}")
    return Table(title, columns, rows, notes + caveats((group.label, group.runs) for group in groups))


def _other_figures(groups: Sequence[Group]) -> dict[str, Column]:
    """Return columns for the first metric pooled over clients, and for all other metrics that the groups have."""
    first = measure_of(groups)
    found = {f"{first.name}_pooled": Column(f"{first.title}, pooled", first.show)} if first.pooled else {}
    others = [measure for group in groups for measure in group.runs[0].measures[1:]]
    return found | {other.name: Column(other.heading, other.show) for other in others}


def caveats(groups: Iterable[tuple[str, Sequence[Run]]]) -> list[str]:
    """Return what the figures of each run leave out: metrics that are not finite; events that diverged, and why."""
    told: list[str] = []
    for group, runs in groups:
        for run in runs:
            label = f"{group}, seed {run.config.get('seed')}" if len(runs) > 1 else group
            for measure in run.measures:
                if left_out := run.number(f"{measure.name}_left_out"):
                    why = "not finite" if measure.percent else "undefined for them, or not finite"
                    told.append(f"{label}: clients not counted, since their {measure.title} is {why}: {left_out:g}")
            told.append(_failures(label, run))
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


def sweep(groups: Mapping[str, Group], figure: str = "", bases: Mapping[str, str] | None = None) -> Table:
    """Return a table of a figure at every point of a sweep, and its difference to another point on the same seeds.

    Without a name the figure is what the runs are measured by. `bases` has the point that each is compared with; the
    first, where it has none.
    """
    shown = quantity([run for group in groups.values() for run in group.runs], figure)
    columns = [
        Column("point", left=True),
        Column("seeds"),
        Column(shown.heading, shown.show),
        Column("95 % interval", partial(_half, shown)),
        Column("difference", partial(shown.show, sign="+")),
        Column("its 95 % interval", partial(_half, shown)),
        Column("sent", size),
    ]
    rows: list[list[Any]] = []
    values = {
        label: {int(run.config.get("seed", 0)): v for run in group.runs if (v := run.number(shown.name)) is not None}
        for label, group in groups.items()
    }
    start = next((label for label, by_seed in values.items() if by_seed), "")
    to = {label: (bases or {}).get(label, start) for label in groups}
    for label, group in groups.items():
        by_seed, base = values[label], values.get(to[label], {})
        if not by_seed:
            rows.append([label, 0, None, None, None, None, None])
            continue
        found = interval(list(by_seed.values()))
        difference = paired_by(by_seed, base) if to[label] != label else None
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
    which = "the first point" if len(set(to.values())) < 2 else "the first point of the same world"
    notes = [f"difference: to {which}, paired by seed; intervals by Student's t over seeds"]
    return Table("", columns, rows, notes + caveats((label, group.runs) for label, group in groups.items()))


_USUAL = "as usual"


def forecast_table(found: Forecast) -> Table:
    """Return a table that describes a run before it begins."""
    config, joins, parts, trace = found.config, found.joins, len(found.messages), found.config.participation.trace
    late = ", ".join(f"{client} at {time:.1f}" for client, time in sorted(joins.items(), key=lambda j: j[1])[:8])
    lines = {
        "task": config.task.function or f"{config.data.source}, {config.data.partition}, {config.task.model}",
        "method": f"{config.method_name}: {_changed(config.method)}",
        "clients": f"{config.clients:,}, seed {config.seed}",
        "training samples": f"{_range(found.samples)} a client; for testing {_range(found.tests)}",
        "join late": f"{len(joins)}: {late}{', ...' if len(joins) > 8 else ''}" if joins else "nobody",
        "participation": _changed(config.participation)
        + (f"; online {_range([100 * share for share in found.online])} % of the time" if trace else ""),
        "neighbours": _changed(config.neighbours),
        **{name: words for name in ("staleness", "sparsity") if (words := _changed(getattr(config, name))) != _USUAL},
        "network": _changed(config.network),
        "a line": f"{_range(found.rates, size)} per unit of time" if max(found.rates) < math.inf else "no limit",
        "compute": _changed(config.compute),
        "compute event": f"{_range(found.steps)} steps, pseudo-time {_range(found.paces)}"
        + _in_time(config, found.paces),
        "horizon": f"{config.horizon:g}{_in_time(config, [config.horizon])}: about {found.events:,.0f} compute events, "
        f"{found.training_steps:,.0f} training steps",
        "model": f"{found.parameters:,} parameters, {size(found.model_bytes)}",
        "a message": (size(max(found.messages)) if found.receivers else "nothing")
        + (f", in {parts} parts" if parts > 1 else ""),
        "a push": f"{size(found.push_bytes)} to {number(found.receivers)} receivers{' each' if parts > 1 else ''}",
        "sent in all": f"about {size(found.events * found.push_bytes)}",
        "memory": f"about {size(found.memory)} for models, optimisers and full mailboxes, beside the data",
        "executor": f"{config.executor.kind}, {config.executor.size} workers",
    }
    title = f"{config.task_name}, {config.method_name}: a dry run"
    return Table(title, [Column("", left=True), Column("", left=True)], [list(line) for line in lines.items()])


def _in_time(config: Config, times: Sequence[float]) -> str:
    """Return the median of pseudo-times by the clock, if the world says how long a unit is."""
    return "" if config.seconds is None else f", {duration(statistics.median(times) * float(config.seconds))}"


def _changed(section: Any) -> str:
    """Return what differs from the defaults, and always the kind."""
    changed = [
        f"{field.name} {getattr(section, field.name)}"
        for field in fields(section)
        if field.name == "kind" or getattr(section, field.name) != field.default
    ]
    return ", ".join(changed) or _USUAL


def _range(values: Sequence[float], show: Callable[[float], str] = number) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return show(low) if low == high else f"{show(low)} to {show(high)} (median {show(middle)})"


def theory_table(run: Run) -> Table:
    """Return a table of what a run measured of the paper's convergence theorem; a note names the meters it lacks."""
    rows, off = [], set()
    for symbol, meaning, where, meter in _TERMS:
        value = run.number(where)
        if value is None:
            off.add(meter)
        else:
            rows.append([symbol, meaning, value])
    notes = (
        [f"not measured: meters.names lacks {', '.join(sorted(off))}, or the method has no such term"] if off else []
    )
    columns = [Column("symbol", left=True), Column("what it is", left=True), Column("measured", number)]
    return Table("The theorem's terms, as measured", columns, rows if run.summary else [], notes)


def late_clients(run: Run) -> Table:
    """Return a table of the clients that joined late: when, the best that each reached, and the last."""
    rows, measure = [], run.measure
    for client, joined in run.joins().items():
        values = run.client_series(client)[1]
        rows.append([client, joined, measure.best(values), values[-1] if values else None])
    best, last = ("best %", "at the end %") if measure == ACCURACY else (f"best {measure.heading}", "at the end")
    columns = [Column("client"), Column("joined at", "{:.1f}".format), Column(best, measure.show)]
    return Table("Clients that joined late", [*columns, Column(last, measure.show)], rows)


def _half(shown: Quantity, value: float | None) -> str:
    return "-" if value is None else f"± {shown.show(value)}"
