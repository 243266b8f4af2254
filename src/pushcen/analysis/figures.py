"""The figures of a report, each from groups of runs. One that has nothing to show is None."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pushcen.analysis.bytes_figures import accuracy_bytes_panels, bytes_per_push
from pushcen.analysis.groups import Group, looks, measure_of
from pushcen.analysis.panels import Panels, axis_label, draw_line, draw_panels, scaled
from pushcen.analysis.style import Style
from pushcen.drawing import canvas, drawing, legend_below
from pushcen.measure import ACCURACY, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TIME = "pseudo-time"
Figures = dict[str, tuple[str, Callable[[Sequence[Group]], "Figure | None"]]]


def accuracy(groups: Sequence[Group]) -> "Figure | None":
    """Draw accuracy over pseudo-time, the mean over clients; with a band over seeds, or over clients for one run.

    Here and below, accuracy stands for whatever the groups are measured by.
    """
    return accuracy_panels({"": groups})


def accuracy_panels(panels: Panels) -> "Figure | None":
    """Draw the same for the groups of several points side by side."""
    shown = _measured(panels)
    return draw_panels(shown, _curves) if shown else None


def _curves(axes: Any, groups: Sequence[Group], styles: Sequence[Style]) -> None:
    measure = measure_of(groups)
    bands = [group.band(measure.name) for group in groups]
    for group, band, style in zip(groups, bands, styles, strict=True):
        draw_line(axes, band.times, scaled(measure, band.mean), style, group.label)
        if len(group.runs) > 1:
            low, high = scaled(measure, band.low), scaled(measure, band.high)
            axes.fill_between(band.times, low, high, color=style.colour, alpha=0.18, linewidth=0)
    alone = groups[0] if len(groups) == 1 and len(groups[0].runs) == 1 else None
    if alone and (spread := alone.band(f"{measure.name}_sd")).times == bands[0].times:
        low = [mean - sd for mean, sd in zip(bands[0].mean, spread.mean, strict=True)]
        high = [mean + sd for mean, sd in zip(bands[0].mean, spread.mean, strict=True)]
        axes.fill_between(
            spread.times, scaled(measure, low), scaled(measure, high), color=styles[0].colour, alpha=0.15,
            linewidth=0, label="± SD over clients",
        )  # fmt: skip
    if any(len(group.runs) > 1 for group in groups):
        seeds = " to ".join(map(str, sorted({len(group.runs) for group in groups})))
        axes.set_title(f"mean and ± SD over {seeds} seeds", fontsize=9, loc="right", color="#555555")
    axes.set(xlabel=_TIME, ylabel=axis_label(measure, "mean over clients"))


def delayed_panels(panels: Panels) -> "Figure | None":
    """Draw the clients that join late: the mean of those that are there, and, for one group, every single one."""
    shown = _measured(panels, "delayed_")
    return draw_panels(shown, _delayed) if shown else None


def _delayed(axes: Any, groups: Sequence[Group], styles: Sequence[Style]) -> None:
    measure = measure_of(groups)
    for group, style in zip(groups, styles, strict=True):
        band = group.band(f"delayed_{measure.name}")
        if len(groups) == 1:
            _single_curves(axes, group, style)
        label = f"{group.label}, mean" if len(groups) == 1 else group.label
        draw_line(axes, band.times, scaled(measure, band.mean), style, label)
    joins = sorted({time for run in groups[0].runs for time in run.joins().values()})
    if joins:
        axes.plot(
            joins, [0] * len(joins), "|", color="#333333", markersize=14, markeredgewidth=1.6, clip_on=False,
            transform=axes.get_xaxis_transform(), label="a client joins",
        )  # fmt: skip
    axes.set(xlabel=_TIME, ylabel=axis_label(measure, "mean over the delayed"))


def _measured(panels: Panels, prefix: str = "") -> Panels:
    """Return the panels that have something to show of the metric."""
    return {
        name: groups
        for name, groups in panels.items()
        if any(group.band(f"{prefix}{group.measure.name}").times for group in groups)
    }


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
                    draw_line(axes, band.times, band.mean, style, group.label)
            axes.set(ylabel=text)
            axes.set_ylim(bottom=0)
        axes.set_xlabel(_TIME)
        legend_below(figure)
        return figure


def figures_of(measure: Measure, targets: Sequence[float] = (), panels: Panels | None = None) -> Figures:
    """Return what a report of runs with this metric has, in its order: file name, title, and what draws it.

    With several `panels` accuracy is drawn in them, whatever the groups; `targets` are lines in what is drawn of bytes.

    >>> list(figures_of(Measure("rmse", higher_is_better=False)))
    ['rmse', 'delayed', 'rmse_bytes', 'bytes_per_push', 'mass']
    """
    name, title = measure.name, measure.title[:1].upper() + measure.title[1:]
    several = panels if panels and len(panels) > 1 else None
    return {
        name: (f"{title} over pseudo-time", lambda groups: accuracy_panels(several or {"": groups})),
        "delayed": ("Clients that join late", lambda groups: delayed_panels(several or {"": groups})),
        f"{name}_bytes": (
            f"{title} against what is sent",
            lambda groups: accuracy_bytes_panels(several or {"": groups}, targets),
        ),
        "bytes_per_push": ("Bytes of a push", bytes_per_push),
        "mass": ("Mass and consensus", mass),
    }


FIGURES = figures_of(ACCURACY)


def _single_curves(axes: Any, group: Group, style: Style) -> None:
    label = "single clients"
    for run in group.runs:
        for client in run.joins():
            times, values = run.client_series(client)
            axes.plot(times, scaled(run.measure, values), color=style.colour, alpha=0.35, linewidth=0.8, label=label)
            label = "_"
