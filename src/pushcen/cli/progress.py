"""How far a run is, live: pseudo-time, events a second, accuracy, bytes; and how far many runs are."""

import logging
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pushcen.analysis.units import duration, size
from pushcen.measure import ACCURACY, read

if TYPE_CHECKING:
    from pushcen.runs import Report, RunJob

_RUN_LINE_EVERY = 10.0  # seconds, where there is no terminal to draw on
_CAMPAIGN_LINE_EVERY = 60.0
_LOG = logging.getLogger("pushcen")


class _Notes(logging.Handler):
    """Prints what is logged of a client's data or model; not again what is the same of another client."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console, self._said = console, set[Any]()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record whose text, but for whom it is about, is new."""
        _, *rest = record.args if isinstance(record.args, tuple) and record.args else ("",)
        if (said := (record.msg, *map(str, rest))) not in self._said:
            self._said.add(said)
            self._console.print(record.getMessage(), markup=False, highlight=False, soft_wrap=True)


class RunProgress:
    """An observer that draws a bar; where there is no terminal it prints a line now and then."""

    def __init__(self, label: str, console: Console) -> None:
        self._label, self._console = label, console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task(label, total=None, facts="loading ...")
        self._measure = ACCURACY
        self._value: float | None = None
        self._seen = (time.monotonic(), 0)
        self._rate = self._horizon = 0.0
        self._line = time.monotonic()
        self._notes = _Notes(console)

    def __enter__(self) -> Self:
        self._level = _LOG.level
        _LOG.setLevel(logging.INFO)
        _LOG.addHandler(self._notes)
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        _LOG.removeHandler(self._notes)
        _LOG.setLevel(self._level)

    def started(self, info: dict[str, Any]) -> None:
        """Begin the bar."""
        self._horizon, self._measure = info["horizon"], read(info)[0]
        self._bar.update(self._task, total=self._horizon, completed=info.get("time", 0.0), facts="")

    def progress(self, now: dict[str, Any]) -> None:
        """Move the bar to where the event queue is, which runs a little ahead of the arithmetic."""
        self._show(now)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Move the bar to where the arithmetic is, and show the accuracy, or what else counts."""
        if row.get(self._measure.name) is not None:
            self._value = row[self._measure.name]
        self._show(row)

    def _show(self, now: dict[str, Any]) -> None:
        clock, events = time.monotonic(), now["events"]
        since, before = self._seen
        if clock - since >= 0.5 and events > before:
            rate = (events - before) / (clock - since)
            self._rate = 0.7 * self._rate + 0.3 * rate if self._rate else rate
            self._seen = (clock, events)
        facts = (
            f"T {now['time']:.1f}/{self._horizon:g}  {self._rate:,.0f} events/s  "
            f"{self._measure.says(self._value)}  {size(now['bytes_sent'])}"
        )
        self._bar.update(self._task, completed=now["time"], facts=facts)
        if not self._console.is_terminal and clock - self._line > _RUN_LINE_EVERY:
            self._line = clock
            self._console.print(f"{self._label}: {facts}", highlight=False)

    def ended(self, summary: dict[str, Any]) -> None:
        """Do nothing: the table follows."""


class CampaignProgress:
    """Bars for many runs; where there is no terminal, a line for each run that ends."""

    def __init__(self, runs: "Sequence[RunJob]", console: Console) -> None:
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
            name = report.job.name
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
                self._print(report, first, over)

    def _draw(self, report: "Report", over: bool) -> None:
        name = report.job.name
        if over:
            if name in self._tasks:
                self._bar.remove_task(self._tasks.pop(name))
            return
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=1.0, facts="")
        self._bar.update(self._tasks[name], completed=report.share, facts=_facts(report))

    def _print(self, report: "Report", first: bool, over: bool) -> None:
        now = time.monotonic()
        if first and over and not report.error:
            return  # it was there before
        if over or now - self._line > _CAMPAIGN_LINE_EVERY:
            self._line = now
            done = sum(self._shares.values())
            new = done - self._there
            left = (self._runs - done) * (now - self._begun) / new if new > 0 else None
            share = self._shares[report.job.name]
            facts = report.error or f"{100 * share:.0f} %, {_facts(report)}"
            self._console.print(
                f"{self._ended} of {self._runs} runs, {duration(left)} left. {report.job.name}: {facts}",
                highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip


def _facts(report: "Report") -> str:
    failed = f", {report.failed_events} events failed" if report.failed_events else ""
    return f"{report.measure.says(report.value)}{failed}"
