"""Progress in a notebook: a bar in the cell that runs something, with no magic before it. Elsewhere there is none."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
    """Give an observer that shows how far a run is, if this is a notebook."""
    if not in_notebook():
        yield Quiet()
        return
    shape = "{desc} {percentage:3.0f}% |{bar}| T {n:g} of {total:g} [{elapsed}, {remaining} left{postfix}]"
    with _bar(desc=name, total=1.0, bar_format=shape) as bar:
        yield _Bar(bar)


@contextmanager
def runs_bar(runs: int) -> Iterator["Callable[[Report], None]"]:
    """Give what hears of many runs at a time, and shows how many are done, if this is a notebook."""
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


def _bar(**options: Any) -> Any:
    """Return a bar: a widget, or in text where the notebook has no widgets, which needs no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(**options)
