"""The figures of what is sent: accuracy against bytes, with targets and the best of all runs; bytes of a push."""

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pushcen.analysis.groups import Group, looks, measure_of
from pushcen.analysis.panels import Panels, axis_label, draw_line, draw_panels, scaled
from pushcen.analysis.style import Style
from pushcen.analysis.targets import goal
from pushcen.analysis.units import size, unit
from pushcen.drawing import INK, canvas, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_bytes_panels(panels: Panels, targets: Sequence[float] = ()) -> "Figure | None":
    """Draw accuracy against the bytes that all clients together have sent, for the groups of each panel.

    Several groups have the best for so many bytes marked, which is the Pareto front of all of them; targets are lines.
    """
    shown = {name: groups for name, groups in panels.items() if any(map(_points, groups))}
    return draw_panels(shown, lambda axes, groups, styles: _draw(axes, groups, styles, targets)) if shown else None


def _points(group: Group) -> list[tuple[float, float]]:
    """Return what a group had sent and reached, at every evaluation since it has sent something."""
    sent, reached = group.band("bytes_sent"), group.band(group.measure.name)
    at = dict(zip(sent.times, sent.mean, strict=True))
    return [(at[t], value) for t, value in zip(reached.times, reached.mean, strict=True) if at.get(t, 0) > 0]


def _draw(axes: Any, groups: Sequence[Group], styles: Sequence[Style], targets: Sequence[float]) -> None:
    measure, found = measure_of(groups), [_points(group) for group in groups]
    every = [point for points in found for point in points]
    one, name = unit(max(sent for sent, _ in every))
    for group, points, style in zip(groups, found, styles, strict=True):
        if points:
            draw_line(axes, [b / one for b, _ in points], scaled(measure, [a for _, a in points]), style, group.label)
        elif last := group.band(measure.name).mean[-1:]:
            axes.axhline(
                measure.scale * last[0], color=style.colour, linestyle=style.line, linewidth=1.2,
                label=f"{group.label} (sends nothing)",
            )  # fmt: skip
    if sum(map(bool, found)) > 1:
        best = front(every, measure.better)
        axes.step(
            [b / one for b, _ in best], scaled(measure, [a for _, a in best]), where="post", color="#999999",
            linewidth=5, alpha=0.35, zorder=0, label="the best for so many bytes",
        )  # fmt: skip
    names = f"target{'s' if len(targets) > 1 else ''} {', '.join(goal(target, measure) for target in targets)}"
    for target in targets:
        axes.axhline(target, color=INK, linewidth=0.9, linestyle=(0, (1, 2)), label=names)
    axes.set(xlabel=f"sent by all clients together ({name})", ylabel=axis_label(measure, "mean over clients"))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    wide = max(sent for sent, _ in every) > 100 * min(sent for sent, _ in every)  # numbers would touch each other
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:,g}" if not wide and f"{value:e}"[0] in "25" else "")


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
