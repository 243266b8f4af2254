"""How far a run is, live: pseudo-time, events a second, accuracy, bytes, and the time that is left."""

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from pushcen.analysis.units import percent, size

_LINE_EVERY = 10.0  # seconds, where there is no terminal to draw on


class Watch:
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
        self._accuracy: float | None = None
        self._seen = (time.monotonic(), 0)
        self._rate = self._horizon = 0.0
        self._line = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def started(self, info: dict[str, Any]) -> None:
        """Show that it begins."""
        self._horizon = info["horizon"]
        self._bar.update(self._task, total=self._horizon, completed=info.get("time", 0.0), facts="")

    def progress(self, now: dict[str, Any]) -> None:
        """Move the bar to where the event queue is, which runs a little ahead of the arithmetic."""
        self._show(now)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Move the bar to where the arithmetic is, and show the accuracy."""
        if row.get("accuracy") is not None:
            self._accuracy = row["accuracy"]
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
            f"accuracy {percent(self._accuracy)} %  {size(now['bytes_sent'])}"
        )
        self._bar.update(self._task, completed=now["time"], facts=facts)
        if not self._console.is_terminal and clock - self._line > _LINE_EVERY:
            self._line = clock
            self._console.print(f"{self._label}: {facts}", highlight=False)

    def ended(self, summary: dict[str, Any]) -> None:
        """Nothing more to show."""
