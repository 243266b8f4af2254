"""Many runs: one after the other, or several at a time, each in a process of its own.

What is finished is not run again; what is interrupted is saved, and goes on later; one that fails stops no other.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any

from pushcen.config import Config
from pushcen.errors import PushcenError
from pushcen.folder import CONFIG, Folder
from pushcen.learning.mistakes import told
from pushcen.measure import ACCURACY, Measure, read
from pushcen.runs.launch import launch
from pushcen.runs.run import Run
from pushcen.simulation import ExecutorOptions, Observer, Quiet

if TYPE_CHECKING:
    from pushcen.learning import TaskFunction


@dataclass(frozen=True)
class RunJob:
    """A run to carry out: what people call it, what it is, and where."""

    name: str
    config: Config
    folder: Path


@dataclass
class Report:
    """How far one run is: `share` of its pseudo-time, its metric, how many events failed, and whether it is done.

    `cause` is the error itself, if the run was in this process.
    """

    job: RunJob
    share: float = 0.0
    measure: Measure = ACCURACY
    value: float | None = None
    done: bool = False
    error: str = ""
    cause: Exception | None = None
    failed_events: int = 0

    @property
    def run(self) -> Run:
        """The run, as its folder has it."""
        return Run.open(self.job.folder)

    def finish(self, run: Run) -> None:
        """Take what a finished run has come to."""
        self.share, self.done = 1.0, True
        self.measure, self.value = run.measure, run.number(run.measure.name)
        self.failed_events = int(run.number("failed_events") or 0)


Tell = Callable[[Report], None]
Then = Callable[[Run], object]


def report_of(job: RunJob) -> Report:
    """Return how far a run is that nobody is carrying out: done, if it is finished."""
    report = Report(job)
    if (job.folder / CONFIG).is_file() and (run := report.run).finished:
        report.finish(run)
    return report


def one_by_one(
    jobs: Sequence[RunJob],
    *,
    watch: Callable[[RunJob], AbstractContextManager[Observer]] = lambda _: nullcontext(Quiet()),
    task: "TaskFunction | None" = None,
    observers: Sequence[Observer] = (),
    track: Sequence[str] = (),
    strict: bool = False,
    then: Then | None = None,
) -> list[Report]:
    """Carry out every run that is not finished, in this process, on all cores; return a report of each, in order.

    `watch` gives the observer of one run; the rest is as `launch` has it. On Ctrl-C the run is saved, and
    KeyboardInterrupt raised.
    """
    reports = [Report(job) for job in jobs]
    for report in reports:
        config, folder = report.job.config, report.job.folder
        try:
            with watch(report.job) as observer:
                every = [*observers, observer]
                run = launch(config, folder, task=task, observers=every, track=track, strict=strict, then=then)
        except Exception as error:
            report.error, report.cause = why(error, folder), error
            continue
        if not run.finished:
            raise KeyboardInterrupt
        report.finish(run)
    return reports


def carry_out(
    jobs: Sequence[RunJob],
    *,
    at_once: int = 1,
    track: Sequence[str] = (),
    strict: bool = False,
    tell: Tell = lambda _: None,
    then: Then | None = None,
) -> list[Report]:
    """Carry out every run that is not finished, `at_once` at a time; return a report of each, in order.

    Each has a process, and an equal share of the cores unless its config says how many threads there are. `tell`
    hears how far runs are, `then` is called with each run that has come to its end, both in this thread. A run with
    clients that diverge goes on, and its table says so. On KeyboardInterrupt all that is running is saved before it is
    raised again.
    """
    reports = {job.folder: report_of(job) for job in jobs}  # two that are the same run are run once
    waiting: queue.SimpleQueue[Report] = queue.SimpleQueue()
    for report in reports.values():
        if report.done:
            tell(report)
        else:
            waiting.put(report)
    workers = min(at_once, waiting.qsize())
    news: queue.SimpleQueue[Report] = queue.SimpleQueue()
    threads = [_Worker(waiting, news, workers, {"track": list(track), "strict": strict}) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) or not news.empty():
            try:
                report = news.get(timeout=0.2)
            except queue.Empty:
                continue
            tell(report)
            if report.done and then is not None:
                then(report.run)
    except BaseException:
        for thread in threads:
            thread.interrupt()
        for thread in threads:
            thread.join()
        raise
    return [reports[job.folder] for job in jobs]


def why(error: Exception, folder: Path) -> str:
    """Return what went wrong, in one line; where, the folder has as a file."""
    file = Folder(folder).write_traceback("".join(traceback.format_exception(error)))
    if isinstance(error, PushcenError):
        return str(error)
    return told(error) + (f"; the traceback is in {file}" if file else "")


class _Worker(threading.Thread):
    """A thread that feeds a process; a process that broke is replaced by a new one for the next run."""

    def __init__(
        self,
        waiting: "queue.SimpleQueue[Report]",
        news: "queue.SimpleQueue[Report]",
        workers: int,
        settings: dict[str, Any],
    ) -> None:
        super().__init__(daemon=True)
        self._waiting, self._news, self._workers, self._settings = waiting, news, workers, settings
        self._process: subprocess.Popen[str] | None = None
        self._ready = self._stopped = False
        self._lock = threading.Lock()

    def interrupt(self) -> None:
        """Make the process save its run, and start no other; one that is still starting has nothing to save."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.send_signal(SIGINT) if self._ready else self._process.terminate()

    def run(self) -> None:
        """Carry out runs until there are no more."""
        try:
            while not self._stopped:
                report = self._waiting.get_nowait()
                self._news.put(replace(report))
                self._follow(report)
                self._news.put(replace(report))
        except queue.Empty:
            pass
        finally:
            self._close()

    def _follow(self, report: Report) -> None:
        process = self._process or self._open()
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        job = report.job
        try:
            process.stdin.write(self._line(job))
            process.stdin.flush()
            for line in process.stdout:
                facts: dict[str, Any] = json.loads(line)
                self._ready = True
                if facts.get("done"):
                    report.finish(report.run)
                if "share" not in facts and "ready" not in facts:
                    report.error = facts.get("error", "")
                    return
                report.share = facts.get("share", report.share)
                report.measure, report.value = read(facts)[0], facts.get("value")
                report.failed_events = facts.get("failed_events", report.failed_events)
                self._news.put(replace(report))
        except BrokenPipeError:
            pass  # it ended before it was given anything to do
        report.error = f"its process ended with exit code {process.wait()}; {job.folder} can go on from its last save"
        self._process, self._ready = None, False

    def _open(self) -> "subprocess.Popen[str] | None":
        with self._lock:
            if not self._stopped:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "pushcen.runs.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | {"OMP_NUM_THREADS": "1"},  # cores go to runs, not to one matrix
                    start_new_session=True,  # Ctrl-C reaches this process, which passes it on once
                )
            return self._process

    def _line(self, job: RunJob) -> str:
        executor = shared(job.config.executor, self._workers)
        facts = {"config": job.config.plain(), "folder": str(job.folder), "executor": asdict(executor)}
        return json.dumps(facts | self._settings | {"path": sys.path}) + "\n"

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()


def shared(executor: ExecutorOptions, runs: int) -> ExecutorOptions:
    """Return what one of several runs at a time computes on: its share of the cores, if not told how many threads.

    >>> shared(ExecutorOptions(workers=3), runs=2).workers, shared(ExecutorOptions(), runs=1000).workers
    (3, 1)
    """
    if executor.kind != "threads" or executor.workers:
        return executor
    return replace(executor, workers=max(1, executor.size // runs))
