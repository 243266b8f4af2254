"""One run from beginning to end, or from its last checkpoint to its end."""

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pushcen.errors import ModelError, OptionError, RunError, TaskError
from pushcen.folder import METRICS, Folder, Row, number, read_rows
from pushcen.learning import Samples, TaskFunction
from pushcen.learning.frozen import check_same_frozen
from pushcen.measure import written
from pushcen.memory import give_back_free_pages
from pushcen.simulation import checkpoint
from pushcen.simulation.engine import Engine
from pushcen.simulation.executors import Executor, Host, Make, MakeLearner, start
from pushcen.simulation.jobs import Build, Encode, Facts, Restore
from pushcen.simulation.observer import Observer, Quiet
from pushcen.simulation.options import World, differences
from pushcen.simulation.recorder import Recorder

Summary = dict[str, Any]
TICK = 0.2  # seconds between two reports of progress


def simulate_world(
    world: World,
    task: TaskFunction | None = None,
    folder: str | Path | None = None,
    observer: Observer | None = None,
    *,
    resume: bool = False,
    global_test: Callable[[], Samples] | None = None,
    make: Make | None = None,
    strict: bool = False,
) -> Summary:
    """Run a world; return its summary, which is also written into `folder` if there is one.

    `resume` goes on from the last checkpoint in the folder, to the same final bytes as a run that nothing disturbed.
    Ctrl-C saves and ends cleanly (`summary["status"]` is then "interrupted"). A client whose training diverges goes
    back to how it was before that event, and the others go on; if `strict`, it ends the run with a DivergenceError.
    The folder can be resumed from its last checkpoint. `make` makes learners of another kind than the task's.

    >>> import torch
    >>> from pushcen.learning import Task, TrainingOptions
    >>> from pushcen.methods import PushCen
    >>> def task(client, clients):
    ...     inputs = torch.randn(64, 4, generator=torch.Generator().manual_seed(client))
    ...     targets = (inputs.sum(1) > 0).long()
    ...     return Task(torch.nn.Linear(4, 2), (inputs[:48], targets[:48]), (inputs[48:], targets[48:]))
    >>> world = World(PushCen(clusters=4), TrainingOptions(batch=16), clients=4, horizon=2.0)
    >>> summary = simulate_world(world, task)
    >>> summary["status"], summary["steps"], summary["meters"]["mass"]["exact"]
    ('finished', 24, True)
    """
    world.check_method()
    world.check_graph()
    if make is None:
        if task is None:
            raise OptionError("task: must be given, as a function of (client, clients)")
        make = MakeLearner.of(world, task)
    if world.evaluation.global_test and global_test is None:
        raise OptionError("evaluation.global_test = True: the data has no global test set")
    files = Folder(None if folder is None else Path(folder))
    with files.opened():
        saved = _saved(files, world, resume)
        executor = start(world.executor, Host(make, global_test, strict))
        try:
            with _seldom_collecting_garbage():
                simulation = Simulation(world, executor, files, observer or Quiet(), saved)
                try:
                    return simulation.go()
                finally:
                    simulation.engine.close()
        finally:
            executor.close()


class Simulation:
    """The loop around an engine: progress, checkpoints, Ctrl-C, the end."""

    def __init__(
        self, world: World, executor: Executor, files: Folder, observer: Observer, saved: checkpoint.Saved | None
    ) -> None:
        self._world = world
        self._files = files
        self._observer = observer
        self._identity = world.identity()
        self._started = self._ticked = self._saved_at = time.monotonic()
        self._stop = False
        self._noted: list[float] | None = [] if saved is None else None  # when each row was there, if all were here
        build = Build(labels=world.neighbours.policy == "priority")
        tickets = [executor.submit(client, [build]) for client in range(world.clients)]
        facts: list[Facts] = [executor.wait(ticket) for ticket in tickets]
        _check_alike(facts)
        for target in world.evaluation.targets:
            facts[0].measures[0].check_target(target, "evaluation.targets")
        if saved is None:
            self.engine = Engine(world, executor, facts, executor.submit(0, [Encode()]))
            self.engine.plan()
        else:
            self.engine = Engine(world, executor, facts, saved.first(executor, facts[0]))
            for node in self.engine.nodes:
                node.proxy.ask(Restore(saved.learner(node.index)))
            saved.restore(self.engine)
        files.begin(saved.metrics_bytes if saved else 0)
        self._spent = [self._so_far(row) for row in read_rows(files.path)] if saved and files.path else []
        self.engine.evaluator.write = self._write
        if files.path is not None and world.record.events:
            self.engine.recorder = Recorder(self.engine, files.path, saved.recorder if saved else None)
        self._built = time.monotonic()

    def go(self) -> Summary:
        """Run to the end, or to an interruption."""
        engine, files = self.engine, self._files
        self._observer.started(self._info())
        gc.collect(1)  # what building left over; all that was imported need not be looked through
        gc.freeze()  # what was built lives to the end
        try:
            with self._catching_interrupts():
                files.write_status("running")  # from here on Ctrl-C saves the run
                self._loop()
                engine.collector.collect()
                checkpoint.save(engine, files, self._identity)
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            files.write_status(status, error=str(error) or type(error).__name__, time=engine.now)
            raise
        finally:
            if engine.recorder is not None:
                engine.recorder.close()
        status = "interrupted" if self._stop and not engine.over else "finished"
        summary = {"status": status, **engine.evaluator.summary()}
        now = time.monotonic()
        summary["times"] = {"build": self._built - self._started, "run": now - self._built}
        if self._noted is not None:
            summary["times"]["rows"] = self._noted
        if engine.recorder is not None:
            summary["times"]["record"] = engine.recorder.seconds
        if self._world.evaluation.targets:
            summary["targets"] = {f"{target:g}": self._until(target) for target in self._world.evaluation.targets}
        if status == "finished":
            files.write_summary(summary)
        files.write_status(status, time=engine.now)
        self._observer.ended(summary)
        return summary

    def _loop(self) -> None:
        engine = self.engine
        while not engine.over and not self._stop:
            engine.act()
            now = time.monotonic()
            if now - self._ticked >= TICK:
                self._ticked = now
                engine.collector.poll()
                self._observer.progress(self._progress())
                if engine.recorder is not None:
                    engine.recorder.flush()
            if now - self._saved_at >= self._world.checkpoint.seconds and self._files.path is not None:
                checkpoint.save(engine, self._files, self._identity)
                self._saved_at = time.monotonic()

    def _write(self, row: dict[str, Any]) -> None:
        self._files.write_row(row)
        self._spent.append(self._so_far(row))
        if self._noted is not None:
            self._noted.append(round(time.monotonic() - self._built, 3))
        self._observer.evaluated(row)
        give_back_free_pages()  # evaluation takes more samples at once than training

    def _so_far(self, row: Row) -> Row:
        first = self.engine.evaluator.measures[0].name
        return {name: row.get(name) for name in ("time", "steps", "bytes_sent")} | {first: number(row, first)}

    def _until(self, target: float) -> Row | None:
        """Return what had been spent when a target was reached, and the value then; None if it was not."""
        first = self.engine.evaluator.measures[0]
        at = first.held(target, [row[first.name] for row in self._spent])
        return None if at is None else {"row": at, **self._spent[at]}

    def _progress(self) -> dict[str, Any]:
        engine = self.engine
        return {
            "time": engine.now,
            "horizon": self._world.horizon,
            "events": engine.events,
            "steps": engine.steps,
            "bytes_sent": sum(node.bytes_sent for node in engine.nodes),
        }

    def _info(self) -> dict[str, Any]:
        facts = [node.facts for node in self.engine.nodes]
        return {
            "clients": self._world.clients,
            "horizon": self._world.horizon,
            "time": self.engine.now,
            "parameters": facts[0].parameters,
            "message_bytes": facts[0].sizes,
            "samples": [fact.samples for fact in facts],
            "steps": [fact.steps for fact in facts],
            "join_times": self.engine.join_times,
            **written(facts[0].measures),
        }

    @contextmanager
    def _catching_interrupts(self) -> Iterator[None]:
        """Make Ctrl-C end the run between two events; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def ask(*_: Any) -> None:
            self._stop = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _check_alike(facts: list[Facts]) -> None:
    """Refuse clients whose models cannot be averaged, stand on other frozen parts, or are measured otherwise."""
    first = facts[0]
    names = [entry.name for entry in first.schema.entries]
    for client, other in enumerate(facts):
        if names == [entry.name for entry in other.schema.entries]:  # else what is frozen tells more
            _check_schema(first, other, client)
        check_same_frozen(first.frozen, other.frozen, f"client {client}")
        _check_schema(first, other, client)
        if other.measures != first.measures:
            mine, its = (", ".join(one.name for one in fact.measures) for fact in (other, first))
            raise TaskError(f"client {client} is measured by {mine}, client 0 by {its}: must be the same for all")


def _check_schema(first: Facts, other: Facts, client: int) -> None:
    if other.schema != first.schema:
        try:
            first.schema.check_same(other.schema)
        except ModelError as error:
            raise ModelError(f"client {client} shares other tensors than client 0: {error}") from None


@contextmanager
def _seldom_collecting_garbage() -> Iterator[None]:
    """Make Python look for cycles less often: a great many objects here live long, and hardly any are in cycles."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _saved(files: Folder, world: World, resume: bool) -> checkpoint.Saved | None:
    """Find the checkpoint to go on from; refuse to write over a run, or to resume another one."""
    if files.path is None:
        return None
    found = checkpoint.find(files.path)
    if not resume:
        if found is not None or (files.path / METRICS).exists():
            raise RunError(f"{files.path}: has a run in it already: resume it, or take another folder")
        return None
    if found is None:
        return None
    saved = checkpoint.Saved(found)
    here, there = world.identity(), world.identity_of(saved.world)
    if isinstance(saved.world.get("method"), Mapping) and there["method.name"] == world.method.name:
        there["method.name"] = here["method.name"]  # earlier versions wrote no module of a user's own method
    if different := differences(here, there):
        raise RunError(f"{files.path}: is a run of another world: {', '.join(different)} differ")
    return saved
