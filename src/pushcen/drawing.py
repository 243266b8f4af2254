"""How every picture looks: its palette, type and grid, a legend that is never cut off, and files without a date."""

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.checks import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
WIDTH = 6.6
"""Of a figure, in inches."""
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"  # Okabe and Ito's: every eye tells them apart
YELLOW, SKY, INK, GREY = "#E69F00", "#56B4E9", "#333333", "#666666"
_LOOK: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 3.6,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "pushcen",
    "text.parse_math": False,
}
_LONGEST, _TWO_ROWS = 72, 0.4  # letters of a label in one line; inches


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw in pushcen's style within this context; the same data gives the same file."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        yield


def canvas(
    rows: int = 1, columns: int = 1, *, width: float = WIDTH, height: float = 4.0, **options: Any
) -> tuple["Figure", Any]:
    """Return a figure and its axes, as `matplotlib.pyplot.subplots` does, with room made for every label."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def legend_below(figure: "Figure") -> None:
    """Explain all curves below the figure, in as many columns as fit; more than two rows make it taller."""
    found = (pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True))
    shown = {textwrap.fill(label, _LONGEST): handle for handle, label in found}
    if not shown:
        return
    labels, handles = list(shown), list(shown.values())
    for columns in range(min(4, len(labels)), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    height = legend.get_window_extent().height / figure.dpi
    figure.set_figheight(figure.get_figheight() + max(0.0, height - _TWO_ROWS))


def write(figure: "Figure", file: Path) -> None:
    """Write a figure as svg, png or pdf, by the file's name, with no date inside."""
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(file.suffix.lower())
    with drawing():
        figure.savefig(file, dpi=150, metadata={dated: None} if dated else None)


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write a figure in several formats; return the files."""
    for form in formats:
        check_choice("format", form, FORMATS)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.{form}" for form in formats]
    for file in files:
        write(figure, file)
    return files
