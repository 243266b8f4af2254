"""Figures of one panel, or of several side by side, in which a label has the same look everywhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pushcen.analysis.groups import Group, looks
from pushcen.analysis.style import Style
from pushcen.drawing import WIDTH, canvas, drawing, legend_below
from pushcen.measure import Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Panels = Mapping[str, Sequence[Group]]
"""The groups of each panel, by its title."""
Draw = Callable[[Any, Sequence[Group], Sequence[Style]], None]
"""Draws groups, with the look of each, on axes."""
_ACROSS, _WIDTH, _HEIGHT = 3, 3.6, 3.4  # panels in a row, and how large each is, in inches


def draw_panels(panels: Panels, draw: Draw) -> "Figure":
    """Draw each panel, with one legend for all."""
    every = {group.label: group for groups in panels.values() for group in groups}
    style = dict(zip(every, looks(list(every.values())), strict=True))
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // _ACROSS)
    size = {} if len(panels) == 1 else {"width": max(WIDTH, _WIDTH * across), "height": _HEIGHT * down + 0.6}
    with drawing():
        figure, grid = canvas(down, across, squeeze=False, **size)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for at, (axes, (title, groups)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
            draw(axes, groups, [style[group.label] for group in groups])
            axes.set_title(title, loc="left")
            if at % across:
                axes.set_ylabel("")
        legend_below(figure)
        return figure


def draw_line(axes: Any, x: Sequence[float], y: Sequence[float], style: Style, label: str) -> None:
    """Draw a curve in its style."""
    axes.plot(
        x, y, color=style.colour, linestyle=style.line, marker=style.marker, markevery=max(1, len(x) // 10), label=label
    )


def scaled(measure: Measure, values: Sequence[float]) -> list[float]:
    """Return values as an axis shows them."""
    return [measure.scale * value for value in values]


def axis_label(measure: Measure, what: str) -> str:
    """Return the label of an axis: with the way that is better, unless it is a share of which more is better."""
    direction = "" if measure.percent and measure.higher_is_better else f"; {measure.direction}"
    return f"{measure.title}, {what}{' (%)' if measure.percent else ''}{direction}"
