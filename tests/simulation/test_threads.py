"""Tasks on threads: of what is ready, the first that was asked for is next."""

import threading
from dataclasses import dataclass, field
from typing import Any

from pushcen.simulation.executors.host import Host
from pushcen.simulation.executors.threads import Threads
from pushcen.simulation.jobs import Job


@dataclass(frozen=True)
class Note(Job):
    """Waits for a gate, then notes whose task it was."""

    into: list[int]
    gate: Any
    begun: Any = field(default_factory=threading.Event)

    def run(self, host, client, inputs):
        self.begun.set()
        self.gate.wait()
        self.into.append(client)
        return None, None


def open_gate():
    gate = threading.Event()
    gate.set()
    return gate


def test_what_became_ready_late_comes_before_what_was_asked_for_after_it():
    order, first, second = [], threading.Event(), threading.Event()
    threads = Threads(Host(make=lambda client: None), workers=2)
    busy = [Note(order, first), Note(order, second)]
    slow, holding = (threads.submit(client, [job]) for client, job in enumerate(busy))
    for job in busy:
        job.begun.wait()
    late = threads.submit(2, [Note(order, open_gate())], [slow])
    others = [threads.submit(client, [Note(order, open_gate())]) for client in range(3, 9)]
    first.set()  # now it is ready, too, behind six others
    for task in (late, *others):
        threads.wait(task)
    assert order == [0, 2, 3, 4, 5, 6, 7, 8]
    second.set()
    threads.wait(holding)
    threads.close()


def test_closing_leaves_out_what_waits():
    order, gate = [], threading.Event()
    threads = Threads(Host(make=lambda client: None), workers=2)
    busy = [Note(order, gate), Note(order, gate)]
    running = [threads.submit(client, [job]) for client, job in enumerate(busy)]
    for job in busy:
        job.begun.wait()
    waiting = threads.submit(2, [Note(order, open_gate())])
    threading.Timer(0.2, gate.set).start()
    threads.close()
    assert sorted(order) == [0, 1]
    assert all(task.done for task in running)
    assert not waiting.done
