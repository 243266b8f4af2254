"""The figures of a report, each from groups of runs. One that has nothing to show is None."""

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pushcen.analysis.groups import Group, looks, measure_of
from pushcen.analysis.style import Style
from pushcen.analysis.units import size, unit
from pushcen.drawing import canvas, drawing, legend_below
from pushcen.measure import ACCURACY, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TIME = "pseudo-time"


def accuracy(groups: Sequence[Group]) -> "Figure | None":
    """Draw accuracy over pseudo-time, the mean over clients; with a band over seeds, or over clients for one run.

    Here and below, accuracy stands for whatever the groups are measured by.
    """
    measure = measure_of(groups)
    bands = [group.band(measure.name) for group in groups]
    if not any(band.times for band in bands):
        return None
    with drawing():
        figure, axes = canvas()
        for group, band, style in zip(groups, bands, looks(groups), strict=True):
            _line(axes, band.times, _scaled(measure, band.mean), style, group.label)
            if len(group.runs) > 1:
                low, high = _scaled(measure, band.low), _scaled(measure, band.high)
                axes.fill_between(band.times, low, high, color=style.colour, alpha=0.18, linewidth=0)
        alone = groups[0] if len(groups) == 1 and len(groups[0].runs) == 1 else None
        if alone and (spread := alone.band(f"{measure.name}_sd")).times == bands[0].times:
            low = [mean - sd for mean, sd in zip(bands[0].mean, spread.mean, strict=True)]
            high = [mean + sd for mean, sd in zip(bands[0].mean, spread.mean, strict=True)]
            axes.fill_between(
                spread.times, _scaled(measure, low), _scaled(measure, high), color=style.colour, alpha=0.15,
                linewidth=0, label="± SD over clients",
            )  # fmt: skip
        if any(len(group.runs) > 1 for group in groups):
            seeds = " to ".join(map(str, sorted({len(group.runs) for group in groups})))
            axes.set_title(f"mean and ± SD over {seeds} seeds", fontsize=9, loc="right", color="#555555")
        axes.set(xlabel=_TIME, ylabel=_axis(measure, "mean over clients"))
        legend_below(figure)
        return figure


def delayed(groups: Sequence[Group]) -> "Figure | None":
    """Draw the clients that join late: the mean of those that are there, and, for one group, every single one."""
    measure = measure_of(groups)
    bands = [group.band(f"delayed_{measure.name}") for group in groups]
    if not any(band.times for band in bands):
        return None
    with drawing():
        figure, axes = canvas()
        for group, band, style in zip(groups, bands, looks(groups), strict=True):
            if len(groups) == 1:
                _single_curves(axes, group, style)
            label = f"{group.label}, mean" if len(groups) == 1 else group.label
            _line(axes, band.times, _scaled(measure, band.mean), style, label)
        joins = sorted({time for run in groups[0].runs for time in run.joins().values()})
        if joins:
            axes.plot(
                joins, [0] * len(joins), "|", color="#333333", markersize=14, markeredgewidth=1.6, clip_on=False,
                transform=axes.get_xaxis_transform(), label="a client joins",
            )  # fmt: skip
        axes.set(xlabel=_TIME, ylabel=_axis(measure, "mean over the delayed"))
        legend_below(figure)
        return figure


def accuracy_bytes(groups: Sequence[Group]) -> "Figure | None":
    """Draw accuracy against the bytes that all clients together have sent; with several, the best for so many bytes."""
    measure, sent = measure_of(groups), [group.band("bytes_sent") for group in groups]
    one, name = unit(max((value for band in sent for value in band.mean), default=0))
    with drawing():
        figure, axes = canvas()
        drawn, all_points = 0, []
        for group, band, style in zip(groups, sent, looks(groups), strict=True):
            reached = group.band(measure.name)
            at = dict(zip(band.times, band.mean, strict=True))
            points = [(at[t], a) for t, a in zip(reached.times, reached.mean, strict=True) if at.get(t, 0) > 0]
            if points:
                _line(axes, [b / one for b, _ in points], _scaled(measure, [a for _, a in points]), style, group.label)
                drawn += 1
                all_points += points
            elif reached.mean:
                axes.axhline(
                    measure.scale * reached.mean[-1], color=style.colour, linestyle=style.line, linewidth=1.2,
                    label=f"{group.label} (sends nothing)",
                )  # fmt: skip
        if drawn > 1:
            best = front(all_points, measure.better)
            axes.step(
                [b / one for b, _ in best], _scaled(measure, [a for _, a in best]), where="post", color="#999999",
                linewidth=5, alpha=0.35, zorder=0, label="the best for so many bytes",
            )  # fmt: skip
        axes.set(xlabel=f"sent by all clients together ({name})", ylabel=_axis(measure, "mean over clients"))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in "25" else "")
        legend_below(figure)
        return figure if drawn else None


def front(points: Sequence[tuple[float, float]], better: Callable[[float, float], bool]) -> list[tuple[float, float]]:
    """Return the points (bytes, value) that no other beats with as few bytes, by bytes: the Pareto front.

    >>> front([(3, 0.7), (1, 0.5), (2, 0.4), (3, 0.6)], lambda one, other: one > other)
    [(1, 0.5), (3, 0.7)]
    """
    found: list[tuple[float, float]] = []
    for sent in sorted({sent for sent, _ in points}):
        for value in (value for at, value in points if at == sent):
            if not found or better(value, found[-1][1]):
                found = [*(found[:-1] if found and found[-1][0] == sent else found), (sent, value)]
    return found


def mass(groups: Sequence[Group]) -> "Figure | None":
    """Draw the mass that clients hold and the consensus error, over pseudo-time."""
    names = {
        "mass_held": "mass in clients' hands (share)",
        "mass_destroyed": "mass destroyed (share)",
        "consensus_error": "consensus error",
    }
    panels = [
        (name, text)
        for name, text in names.items()
        if any((band := group.band(name)).times and (any(band.mean) or name != "mass_destroyed") for group in groups)
    ]
    if not panels:
        return None
    with drawing():
        figure, grid = canvas(len(panels), height=1.2 + 2.4 * len(panels), sharex=True, squeeze=False)
        for axes, (name, text) in zip(grid[:, 0], panels, strict=True):
            for group, style in zip(groups, looks(groups), strict=True):
                band = group.band(name)
                if band.times:
                    _line(axes, band.times, band.mean, style, group.label)
            axes.set(ylabel=text)
            axes.set_ylim(bottom=0)
        axes.set_xlabel(_TIME)
        legend_below(figure)
        return figure


def bytes_per_push(groups: Sequence[Group]) -> "Figure | None":
    """Draw the bytes of one push, to all its receivers together, as bars."""
    bars = [(group, value) for group in groups if (value := group.mean("bytes_per_push"))]
    if len(bars) < 2:
        return None
    one, name = unit(max(value for _, value in bars))
    names = [textwrap.fill(group.label, 28) for group, _ in bars]
    lines = 1 + max(label.count("\n") for label in names)
    with drawing():
        figure, axes = canvas(height=1.4 + max(0.42, 0.1 + 0.17 * lines) * len(bars))
        style = dict(zip([group.label for group in groups], looks(groups), strict=True))
        for at, (group, value) in enumerate(bars):
            look = style[group.label]
            axes.barh(at, value / one, color=look.colour, alpha=0.85, hatch=look.hatch, edgecolor="white", height=0.7)
            axes.annotate(
                size(value), (value / one, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9
            )
        axes.set_yticks(range(len(bars)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.15)
        axes.set_xlabel(f"one push, to all its receivers ({name})")
        return figure


def figures_of(measure: Measure) -> dict[str, tuple[str, Callable[[Sequence[Group]], "Figure | None"]]]:
    """Return what a report of runs with this metric has, in its order: file name, title, and what draws it.

    >>> list(figures_of(Measure("rmse", higher_is_better=False)))
    ['rmse', 'delayed', 'rmse_bytes', 'bytes_per_push', 'mass']
    """
    name, title = measure.name, measure.title[:1].upper() + measure.title[1:]
    return {
        name: (f"{title} over pseudo-time", accuracy),
        "delayed": ("Clients that join late", delayed),
        f"{name}_bytes": (f"{title} against what is sent", accuracy_bytes),
        "bytes_per_push": ("Bytes of a push", bytes_per_push),
        "mass": ("Mass and consensus", mass),
    }


FIGURES = figures_of(ACCURACY)


def _line(axes: Any, x: Sequence[float], y: Sequence[float], style: Style, label: str) -> None:
    axes.plot(
        x, y, color=style.colour, linestyle=style.line, marker=style.marker, markevery=max(1, len(x) // 10), label=label
    )


def _single_curves(axes: Any, group: Group, style: Style) -> None:
    label = "single clients"
    for run in group.runs:
        for client in run.joins():
            times, values = run.client_series(client)
            axes.plot(times, _scaled(run.measure, values), color=style.colour, alpha=0.35, linewidth=0.8, label=label)
            label = "_"


def _scaled(measure: Measure, values: Sequence[float]) -> list[float]:
    return [measure.scale * value for value in values]


def _axis(measure: Measure, what: str) -> str:
    """Return the label of an axis: with the way that is better, unless it is a share of which more is better."""
    direction = "" if measure.percent and measure.higher_is_better else f"; {measure.direction}"
    return f"{measure.title}, {what}{' (%)' if measure.percent else ''}{direction}"
