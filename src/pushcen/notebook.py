"""Progress in a notebook: a bar in the cell that runs something, with no magic before it. Elsewhere there is none.

If it is asked for, curves grow in the cell, too.
"""

import contextlib
import importlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.errors import OptionError, RunError
from pushcen.measure import read
from pushcen.simulation import Observer, Quiet

if TYPE_CHECKING:
    from pushcen.runs import Report


def in_notebook() -> bool:
    """Return whether this runs in the cell of a notebook.

    >>> in_notebook()
    False
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Bar(Quiet):
    """An observer that moves a bar over the run's pseudo-time."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def started(self, info: dict[str, Any]) -> None:
        """Begin where the run begins."""
        self._bar.total, self._bar.n = info["horizon"], info["time"]
        self._bar.refresh()

    def progress(self, now: dict[str, Any]) -> None:
        """Move to where the run is."""
        self._bar.n = round(now["time"], 2)
        self._bar.refresh()

    def evaluated(self, row: dict[str, Any]) -> None:
        """Show the accuracy, or what else counts."""
        measure = read(row)[0]
        self._bar.set_postfix_str(measure.says(row.get(measure.name)))
        self.progress(row)


@contextmanager
def run_bar(name: str) -> Iterator[Observer]:
    """Return an observer that shows how far a run is, if this is a notebook."""
    if not in_notebook():
        yield Quiet()
        return
    shape = "{desc} {percentage:3.0f}% |{bar}| T {n:g} of {total:g} [{elapsed}, {remaining} left{postfix}]"
    with _bar(desc=name, total=1.0, bar_format=shape) as bar:
        yield _Bar(bar)


@contextmanager
def runs_bar(runs: int) -> Iterator["Callable[[Report], None]"]:
    """Return what hears of many runs at a time, and shows how many are done, if this is a notebook."""
    if not in_notebook():
        yield lambda _: None
        return
    shares: dict[str, float] = {}
    shape = "{desc} {percentage:3.0f}% |{bar}| [{elapsed}, {remaining} left]"
    with _bar(desc="runs", total=runs, bar_format=shape) as bar:

        def tell(report: "Report") -> None:
            shares[report.job.name] = 1.0 if report.done else report.share
            bar.n = round(sum(shares.values()), 3)
            bar.refresh()

        yield tell


def run_folder(folder: str | Path | None, name: str) -> Path:
    """Return where a run goes: as told, or in a notebook into `runs/`, which is said, or into a temporary folder."""
    from pushcen.runs import folder_name, free_folder

    if folder is not None:
        return Path(folder)
    if not in_notebook():
        return Path(tempfile.mkdtemp(prefix="pushcen-"))
    at = free_folder(Path("runs"), folder_name(name))
    print(f"run folder: {at}")
    return at


def live_curves(folders: Sequence[Path]) -> "LiveCurve":
    """Return an observer that shows the curves of runs in the cell, while they grow.

    >>> live_curves([])
    Traceback (most recent call last):
    pushcen.errors.OptionError: live = True: is for a notebook's cell; elsewhere there is `pushcen simulate --watch`
    """
    from pushcen.analysis import group
    from pushcen.analysis.figures import figures_of
    from pushcen.analysis.groups import measure_of
    from pushcen.analysis.report import as_image
    from pushcen.runs import Run

    if not in_notebook():
        raise OptionError("live = True: is for a notebook's cell; elsewhere there is `pushcen simulate --watch`")

    def draw() -> str:
        there = []
        for folder in folders:
            with contextlib.suppress(RunError):  # it has not begun
                there.append(Run.open(folder))
        if not (groups := group([run for run in there if run.rows])):
            return ""
        _, figure = next(iter(figures_of(measure_of(groups), panels=None).values()))
        drawn = figure(groups)
        return as_image(drawn, "the metric over pseudo-time, so far") if drawn else ""

    return LiveCurve(draw)


class LiveCurve(Quiet):
    """An observer that shows a picture in the cell, and draws it again as evaluations come.

    `draw` returns HTML, or nothing while there is nothing to see. Drawing takes a twentieth of the time at most.
    """

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        self._next = 0.0
        self._shown: Any = None

    def evaluated(self, row: dict[str, Any]) -> None:  # noqa: ARG002
        """Draw it again, unless that was done a moment ago."""
        if time.monotonic() >= self._next:
            self.show()

    def ended(self, summary: dict[str, Any]) -> None:  # noqa: ARG002
        """Draw it as it stays."""
        self.show()

    def show(self) -> None:
        """Draw it, and put it into the cell."""
        cell, begun = importlib.import_module("IPython.display"), time.monotonic()
        if picture := self._draw():
            if self._shown is None:
                self._shown = cell.display(cell.HTML(picture), display_id=True)
            else:
                self._shown.update(cell.HTML(picture))
        now = time.monotonic()
        self._next = now + 20 * (now - begun)


def _bar(**options: Any) -> Any:
    """Return a bar: a widget, or in text where the notebook has no widgets, which needs no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(**options)
