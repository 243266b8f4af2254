"""What an executor is, and what stands for work that it does later: tickets, a proxy, the order of results."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pushcen.learning import Work
from pushcen.references import ReferenceName
from pushcen.simulation.jobs import Fold, Job, PutBack, Step, Take

Then = Callable[[list[Any], Any], None]
_TAKE, _PUT_BACK = Take(), PutBack()


class Ticket:
    """The promise of what a task makes: `facts`, small, for the simulation; a product, large, for other tasks.

    `client` and `born` say whose compute event made it, and which one of all it was: a message's staleness. `bases` are
    the references to one of which a message is the difference, each with the ticket that stands for it. `at` is when a
    message was made, where that counts, and `size` its bytes, where not all are equally long.
    """

    __slots__ = ("__weakref__", "at", "bases", "born", "client", "facts", "key", "size")

    def __init__(self, client: int, key: int) -> None:
        self.client = client
        self.key = key  # tells tickets apart in a checkpoint
        self.born = 0
        self.at = 0.0
        self.size = 0
        self.bases: Sequence[tuple[ReferenceName, Ticket]] = ()
        self.facts: Any = None


class Executor(Protocol):
    """What every executor offers."""

    def submit(self, client: int, jobs: Sequence[Job], inputs: Sequence[Any] = ()) -> Any:
        """Append a task to a client's chain; return its ticket."""

    def wait(self, ticket: Any) -> Any:
        """Wait for a task, and return its facts; raise what it raised."""

    def is_done(self, ticket: Any) -> bool:
        """Return whether `wait` would return at once."""

    def product(self, ticket: Any) -> Any:
        """Wait for a task, and return its product."""

    def messages(self, ticket: Any) -> dict[int, bytes]:
        """Wait for a task whose product is payloads; return their bytes, by part."""

    def given(self, client: int, product: Any) -> Any:
        """Return a ticket for what is there already."""

    def close(self) -> None:
        """End all workers."""


class Proxy:
    """Stands for a learner: a client drives it like the learner itself, and it turns what is asked into tasks.

    Payloads are tickets; `step` returns one. `take` and `put_back` cost next to nothing, so they wait for the task that
    follows.
    """

    __slots__ = ("_executor", "_jobs", "client", "encodes", "measures", "steps", "watch")

    def __init__(self, client: int, executor: Executor, steps: int) -> None:
        self.client = client
        self.steps = steps
        self.encodes = True  # whether the next step's weights are sent to anybody
        self.measures = False  # whether steps measure drift and distortion
        self.watch: Callable[[int, int, Ticket], None] | None = None  # sees what is folded
        self._executor = executor
        self._jobs: list[Job] = []

    def fold(self, weight: int, part: int, payloads: Ticket) -> None:
        """Merge a message early."""
        if self.watch is not None:
            self.watch(self.client, weight, payloads)
        self.ask(Fold(weight, part), payloads)

    def take(self) -> None:
        """Hand what has been folded so far to the event that begins."""
        self._jobs.append(_TAKE)

    def put_back(self) -> None:
        """Undo `take`."""
        self._jobs.append(_PUT_BACK)

    def step(self, work: Work) -> Ticket:
        """Merge, train, encode."""
        own, models, adopts, gives, towards, offers, names = work
        senders = tuple(names)
        weights, parts, payloads = zip(*models, strict=True) if models else ((), (), ())
        job = Step(
            own, weights, parts, adopts, self.encodes, self.measures, gives, len(towards), offers, tuple(senders)
        )
        ticket: Ticket = self.ask(job, *payloads, *towards)
        return ticket

    def before(self, job: Job) -> None:
        """Do a job that needs no inputs just before whatever is asked for next."""
        self._jobs.append(job)

    def ask(self, job: Job, *inputs: Any) -> Any:
        """Append a task to the chain that ends with `job`, which needs what `inputs` promise; return its ticket."""
        jobs = self._jobs
        if not jobs:
            return self._executor.submit(self.client, (job,), inputs)
        self._jobs = []
        jobs.append(job)
        return self._executor.submit(self.client, jobs, inputs)


class Collector:
    """Hands each result to whoever asked for it, strictly in the order of asking; bounds how far the queue runs ahead.

    So whatever is counted or written depends on that order alone, and the first error is the same on any executor.
    """

    def __init__(self, executor: Executor, ahead: int) -> None:
        self._executor = executor
        self._ahead = ahead
        self._items: deque[tuple[Sequence[Any], Then, Any]] = deque()

    def add(self, tickets: Sequence[Any], then: Then, context: Any) -> None:
        """Call `then(facts of the tickets, context)` when all is there; wait now if there is too much."""
        self._items.append((tickets, then, context))
        if len(self._items) > self._ahead:
            self.collect(self._ahead // 2)

    def collect(self, leave: int = 0) -> None:
        """Take results in, until no more than `leave` are missing."""
        wait, items = self._executor.wait, self._items
        while len(items) > leave:
            tickets, then, context = items.popleft()
            then([wait(ticket) for ticket in tickets], context)

    def poll(self) -> None:
        """Take in what is there, and wait for nothing."""
        done = self._executor.is_done
        while self._items and all(done(ticket) for ticket in self._items[0][0]):
            self.collect(len(self._items) - 1)
