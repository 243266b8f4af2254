"""Many runs, several at a time, each in a process of its own; what is interrupted is saved and goes on later."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGINT
from typing import Any

from pushcen.config import Config
from pushcen.measure import ACCURACY, Measure, read
from pushcen.reproduce.plan import Planned, RunStore
from pushcen.simulation import ExecutorOptions


@dataclass
class Report:
    """How far one run is: `share` of its pseudo-time, its metric, how many events failed, and whether it is done."""

    planned: Planned
    share: float = 0.0
    measure: Measure = ACCURACY
    value: float | None = None
    done: bool = False
    error: str = ""
    failed_events: int = 0


Tell = Callable[[Report], None]


def carry_out(
    runs: Sequence[Planned], store: RunStore, *, jobs: int = 1, executor: ExecutorOptions | None = None, tell: Tell
) -> list[Report]:
    """Carry out every run that is not finished, `jobs` at a time; return a report of each, in order.

    A run that fails is reported, and does not stop the others; one with clients that diverge goes on, and its
    table says so. On KeyboardInterrupt all that is running is saved before it is raised again.
    """
    reports = [Report(run) for run in runs]
    waiting: queue.SimpleQueue[Report] = queue.SimpleQueue()
    for report in reports:
        found = store.find(report.planned.config)
        if found is not None and found.finished:
            report.share, report.done = 1.0, True
            report.measure, report.value = found.measure, found.number(found.measure.name)
            report.failed_events = int(found.number("failed_events") or 0)
            tell(report)
        else:
            store.folder(report.planned)  # decided here, in one thread
            waiting.put(report)
    kind = executor or ExecutorOptions(workers=1)
    workers = [_Worker(waiting, store, kind, tell) for _ in range(min(jobs, waiting.qsize()))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(0.2)
    except KeyboardInterrupt:
        for worker in workers:
            worker.interrupt()
        for worker in workers:
            worker.join()
        raise
    return reports


class _Worker(threading.Thread):
    """A thread that feeds a process; a process that broke is replaced by a new one for the next run."""

    def __init__(
        self, waiting: "queue.SimpleQueue[Report]", store: RunStore, executor: ExecutorOptions, tell: Tell
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._store, self._executor, self._tell = waiting, store, executor, tell
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def interrupt(self) -> None:
        """Make the process save its run, and start no other."""
        self._stopped = True
        if self._process is not None:
            self._process.send_signal(SIGINT)

    def run(self) -> None:
        """Carry out runs until there are no more."""
        try:
            while not self._stopped:
                report = self._waiting.get_nowait()
                self._follow(report)
                self._tell(report)
        except queue.Empty:
            pass
        finally:
            self._close()

    def _follow(self, report: Report) -> None:
        process = self._process or self._open()
        assert process.stdin is not None
        assert process.stdout is not None
        config, folder = replace(report.planned.config, executor=self._executor), self._store.folder(report.planned)
        process.stdin.write(_job(config, folder))
        process.stdin.flush()
        for line in process.stdout:
            facts: dict[str, Any] = json.loads(line)
            report.share = facts.get("share", report.share)
            report.measure, report.value = read(facts)[0], facts.get("value")
            report.failed_events = facts.get("failed_events", report.failed_events)
            if "share" not in facts:
                report.error, report.done = facts.get("error", ""), facts.get("done", False)
                return
            self._tell(report)
        report.error = f"its process ended with exit code {process.wait()}; {folder} can go on from its last save"
        self._process = None

    def _open(self) -> "subprocess.Popen[str]":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pushcen.reproduce.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # cores go to runs, not to one matrix
            start_new_session=True,  # Ctrl-C reaches this process, which passes it on once
        )
        return self._process

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()


def _job(config: Config, folder: Path) -> str:
    return json.dumps({"config": config.plain(), "folder": str(folder)}) + "\n"
