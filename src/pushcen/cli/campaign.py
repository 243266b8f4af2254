"""How far many runs are: a bar over all of them, and one for each that is running."""

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pushcen.analysis.units import duration, percent

if TYPE_CHECKING:
    from pushcen.reproduce.campaign import Report
    from pushcen.reproduce.plan import Planned

_LINE_EVERY = 60.0  # seconds, where there is no terminal to draw on


class Board:
    """Hears of every run; draws bars, or, where there is no terminal, prints a line for each run that ends."""

    def __init__(self, runs: "Sequence[Planned]", console: Console) -> None:
        self._runs, self._console = len(runs), console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
            expand=True,
        )
        self._all = self._bar.add_task("all runs", total=len(runs), facts="")
        self._tasks: dict[str, TaskID] = {}
        self._shares: dict[str, float] = {}
        self._ended = 0
        self._begun = self._line = time.monotonic()
        self._there = 0.0  # shares that were there before
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def tell(self, report: "Report") -> None:
        """Show how far a run is."""
        with self._lock:
            name = report.planned.name
            first = name not in self._shares
            self._shares[name] = 1.0 if report.done else report.share
            if first:
                self._there += self._shares[name]
            over = report.done or bool(report.error)
            if over:
                self._ended += 1
            facts = f"{self._ended} of {self._runs}"
            self._bar.update(self._all, completed=sum(self._shares.values()), facts=facts)
            self._draw(report, over)
            if not self._console.is_terminal:
                self._say(report, first, over)

    def _draw(self, report: "Report", over: bool) -> None:
        name = report.planned.name
        if over:
            if name in self._tasks:
                self._bar.remove_task(self._tasks.pop(name))
            return
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=1.0, facts="")
        self._bar.update(self._tasks[name], completed=report.share, facts=_facts(report))

    def _say(self, report: "Report", first: bool, over: bool) -> None:
        now = time.monotonic()
        if first and over and not report.error:
            return  # it was there before
        if over or now - self._line > _LINE_EVERY:
            self._line = now
            done = sum(self._shares.values())
            new = done - self._there
            left = (self._runs - done) * (now - self._begun) / new if new > 0 else None
            share = self._shares[report.planned.name]
            facts = report.error or f"{100 * share:.0f} %, {_facts(report)}"
            self._console.print(
                f"{self._ended} of {self._runs} runs, {duration(left)} left. {report.planned.name}: {facts}",
                highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip


def _facts(report: "Report") -> str:
    failed = f", {report.failed_events} events failed" if report.failed_events else ""
    return f"accuracy {percent(report.accuracy)} %{failed}"
