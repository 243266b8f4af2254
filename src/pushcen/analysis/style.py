"""How figures look: colours that every eye tells apart, and line styles and markers that do so without colour."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pushcen.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


class Style(NamedTuple):
    """One method's look, the same in every figure."""

    colour: str
    line: Any
    marker: str
    hatch: str


_STYLES = (  # Okabe and Ito's colours
    Style("#0072B2", "-", "o", ""),
    Style("#D55E00", "--", "s", "//"),
    Style("#009E73", "-.", "^", "xx"),
    Style("#CC79A7", ":", "D", ".."),
    Style("#333333", (0, (6, 1, 1, 1, 1, 1)), "v", "\\\\"),
    Style("#E69F00", (0, (8, 2)), "P", "++"),
    Style("#56B4E9", (0, (3, 1)), "X", "--"),
    Style("#8A7B00", (0, (1, 2)), "*", "oo"),
)
_KNOWN = ("pushcen", "async-dfedavg", "swift", "divshare", "independent", "push-sum", "swift-random")


def styles(methods: Sequence[str]) -> list[Style]:
    """Give each a style: a method its own if it is the only one of its name, everybody else what is left, in order.

    >>> [style.marker for style in styles(["swift", "mine", "pushcen"])]
    ['^', 's', 'o']
    """
    fixed = {at: _KNOWN.index(m) for at, m in enumerate(methods) if m in _KNOWN and methods.count(m) == 1}
    free = [at for at in range(len(_STYLES)) if at not in fixed.values()] or list(range(len(_STYLES)))
    rest = iter(range(len(methods)))
    return [_STYLES[fixed[at] if at in fixed else free[next(rest) % len(free)]] for at in range(len(methods))]


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw in pushcen's manner; the same data gives the same file."""
    import matplotlib as mpl

    with mpl.rc_context(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "legend.frameon": False,
            "hatch.linewidth": 0.6,
            "svg.hashsalt": "pushcen",
            "text.parse_math": False,
        }
    ):
        yield


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write a figure in several formats, with no date inside; return the files."""
    for form in formats:
        if form not in FORMATS:
            raise OptionError(f"format = {form!r}: must be one of {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.{form}" for form in formats]
    with drawing():
        for file, form in zip(files, formats, strict=True):
            dated = {"svg": "Date", "pdf": "CreationDate"}.get(form)
            figure.savefig(file, dpi=150, metadata={dated: None} if dated else None)
    return files
