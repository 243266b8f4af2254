"""What stands for a learner that works elsewhere, and later: a client drives it like the learner itself."""

from collections.abc import Callable
from typing import Any

from pushcen.learning import Work
from pushcen.simulation.executors import Executor, Operation, Ticket


class Proxy:
    """Turns what a client asks of its learner into tasks. Payloads are tickets; `step` returns one.

    `take` and `put_back` cost next to nothing, so they wait for the task that follows.
    """

    __slots__ = ("_inputs", "_operations", "_runs", "client", "encodes", "measures", "steps", "watch")

    def __init__(self, client: int, runs: Executor, steps: int) -> None:
        self.client = client
        self.steps = steps
        self.encodes = True  # whether the next step's weights are sent to anybody
        self.measures = False  # whether steps measure drift and distortion
        self.watch: Callable[[int, int, Ticket], None] | None = None  # sees what is folded
        self._runs = runs
        self._operations: list[Operation] = []
        self._inputs: list[Ticket] = []

    def fold(self, weight: int, part: int, payloads: Ticket) -> None:
        """Merge a message early."""
        if self.watch is not None:
            self.watch(self.client, weight, payloads)
        self._inputs.append(payloads)
        self.ask("fold", weight, part)

    def take(self) -> None:
        """Let what was folded so far belong to the event that begins."""
        self._operations.append(("take",))

    def put_back(self) -> None:
        """Undo `take`."""
        self._operations.append(("put_back",))

    def step(self, work: Work) -> Ticket:
        """Merge, train, encode."""
        weights, parts, payloads = zip(*work.models, strict=True) if work.models else ((), (), ())
        self._inputs += payloads
        ticket: Ticket = self.ask("step", work.own, weights, parts, work.adopts, self.encodes, self.measures)
        return ticket

    def ask(self, name: str, *arguments: Any, inputs: list[Any] | None = None) -> Any:
        """Append a task with one more operation to the chain; return its ticket."""
        self._operations.append((name, *arguments))
        if inputs:
            self._inputs += inputs
        return self.flush()

    def flush(self) -> Any:
        """Append what is left over; return the ticket, or None if there is nothing."""
        if not self._operations:
            return None
        operations, inputs = self._operations, self._inputs
        self._operations, self._inputs = [], []
        return self._runs.submit(self.client, operations, inputs)
