"""Tasks on threads of this process. PyTorch lets go of the interpreter while it computes; each uses one core.

A single worker is no thread of its own: what is asked for is done at once, and nobody is woken for it.
"""

import contextlib
import math
import threading
from collections.abc import Sequence
from queue import Empty, PriorityQueue
from typing import Any

import torch

from pushcen.simulation.executors.executor import Ticket
from pushcen.simulation.executors.host import Host
from pushcen.simulation.jobs import Job


class ThreadTask(Ticket):
    """A task, which is its own ticket: it waits until what it needs is there, and wakes what waits for it."""

    __slots__ = ("before", "done", "error", "inputs", "jobs", "missing", "product", "waiters")

    def __init__(self, client: int, key: int, jobs: Sequence[Job], inputs: Sequence["ThreadTask"]) -> None:
        super().__init__(client, key)
        self.jobs = jobs
        self.inputs = inputs
        self.before: ThreadTask | None = None  # in the client's chain
        self.missing = 1
        self.waiters: list[ThreadTask] = []
        self.done = False
        self.product: Any = None
        self.error: BaseException | None = None


class Threads:
    """Runs each client's tasks in order, and a task when its inputs are there, on any thread.

    Of what is ready the first that was asked for is next: others wait for that, and at the end nobody for one alone.
    """

    def __init__(self, host: Host, workers: int) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._ready: PriorityQueue[tuple[float, ThreadTask | None]] = PriorityQueue()
        self._chains: dict[int, ThreadTask] = {}  # the last task of each client that has one waiting or running
        self._awaited: ThreadTask | None = None
        self._keys = 0
        self._torch_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        names = [f"learner-{i}" for i in range(workers)] if workers > 1 else []
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        for thread in self._threads:
            thread.start()

    def submit(self, client: int, jobs: Sequence[Job], inputs: Sequence[Any] = ()) -> ThreadTask:
        """Append a task to a client's chain."""
        self._keys += 1
        task = ThreadTask(client, self._keys, jobs, inputs)
        if not self._threads:
            return self._at_once(task)
        with self._lock:
            before = self._chains.get(client)
            if before is not None:
                task.before = before
                if not before.done:
                    before.waiters.append(task)
                    task.missing += 1
            self._chains[client] = task
            for needed in inputs:
                if not needed.done:
                    needed.waiters.append(task)
                    task.missing += 1
            task.missing -= 1
            ready = not task.missing
        if ready:
            self._ready.put((task.key, task))
        return task

    def wait(self, ticket: ThreadTask) -> Any:
        """Wait for a task, and return its facts; raise what it raised."""
        if not ticket.done:
            with self._wake:
                self._awaited = ticket
                while not ticket.done:
                    self._wake.wait()
                self._awaited = None
        if ticket.error is not None:
            raise ticket.error
        return ticket.facts

    def is_done(self, ticket: ThreadTask) -> bool:
        """Return whether `wait` would return at once."""
        return ticket.done

    def product(self, ticket: ThreadTask) -> Any:
        """Wait for a task, and return its product."""
        self.wait(ticket)
        return ticket.product

    def messages(self, ticket: ThreadTask) -> dict[int, bytes]:
        """Wait for a task whose product is payloads; return their bytes, by part."""
        return {part: payload.data for part, payload in self.product(ticket).items()}

    def given(self, client: int, product: Any) -> ThreadTask:
        """Return a ticket for what is there already."""
        self._keys += 1
        task = ThreadTask(client, self._keys, (), ())
        task.done, task.product = True, product
        return task

    def close(self) -> None:
        """End the threads. What runs is finished, what waits is not."""
        with self._lock, contextlib.suppress(Empty):
            while True:
                self._ready.get_nowait()
        for _ in self._threads:
            self._ready.put((math.inf, None))
        for thread in self._threads:
            thread.join()
        torch.set_num_threads(self._torch_threads)

    def _work(self) -> None:
        torch.set_num_threads(1)
        while (task := self._ready.get()[1]) is not None:
            self._run(task)
            del task  # or its product would stay until the next task comes

    def _at_once(self, task: ThreadTask) -> ThreadTask:
        """Run a task in the thread that asks for it: all that it needs is there. Chains hold failures only."""
        task.before = self._chains.get(task.client)
        self._compute(task)
        task.done = True
        if task.error is not None:
            self._chains[task.client] = task
            if isinstance(task.error, KeyboardInterrupt):
                raise task.error
        return task

    def _run(self, task: ThreadTask) -> None:
        self._compute(task)
        with self._lock:
            task.done = True
            waiters, task.waiters = task.waiters, []
            if task.error is None and self._chains.get(task.client) is task:
                del self._chains[task.client]
            ready = []
            for waiter in waiters:
                waiter.missing -= 1
                if not waiter.missing:
                    ready.append(waiter)
            if self._awaited is task:
                self._wake.notify()
        for waiter in ready:
            self._ready.put((waiter.key, waiter))

    def _compute(self, task: ThreadTask) -> None:
        """Run a task's jobs, unless what it builds upon has failed: then it has failed, too."""
        before, error = task.before, None
        if before is not None:
            error = before.error
        inputs = [needed.product for needed in task.inputs]
        if failed := [needed.error for needed in task.inputs if needed.error is not None]:
            error = failed[0] if error is None else error
        if error is None:
            try:
                task.facts, task.product = self._host.run(task.client, task.jobs, inputs)
            except BaseException as caught:
                error = caught
        task.error = error
        task.jobs = task.inputs = ()
        task.before = None
