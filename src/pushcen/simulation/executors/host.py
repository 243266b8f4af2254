"""The place where learners live: makes them, and carries out what their clients' chains ask of them.

A task is a list of operations on one client's learner, `(name, *arguments)`, and a list of inputs: what other tasks
made, in the order in which the operations use them. Threads share one host; on a cluster each actor has its own.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch

from pushcen.codec import Schema
from pushcen.errors import LearningError
from pushcen.learning import (
    Learner,
    Model,
    Outcome,
    Samples,
    Score,
    State,
    TaskFunction,
    TrainingOptions,
    Work,
    build_task,
)
from pushcen.learning import samples as data
from pushcen.learning.modules import changing_tensors
from pushcen.methods import Method
from pushcen.simulation import rows
from pushcen.streams import seed_of

Operation = tuple[Any, ...]


class Facts(NamedTuple):
    """What the simulation must know of a learner before it works."""

    steps: int
    """Optimiser steps of a compute event."""
    sizes: dict[int, int]
    """Bytes of each part's message."""
    samples: int
    parameters: int
    """How many numbers are shared."""
    schema: Schema
    frozen: dict[str, str]
    """A fingerprint of each parameter that does not train."""


class Make(Protocol):
    """Makes the learner of a client."""

    def __call__(self, client: int, /) -> Any:
        """Make it."""


@dataclass(frozen=True)
class MakeLearner:
    """Makes learners for the clients of a world, from the user's task function."""

    task: TaskFunction
    method: Method
    training: TrainingOptions
    clients: int
    seed: int

    def __call__(self, client: int) -> Learner:
        """Make a client's learner. All start from the same weights."""
        task = build_task(self.task, client, self.clients, seed_of(self.seed, "initial weights"))
        seed = seed_of(self.seed, "learner", client)
        return Learner(task, self.method.update(), self.training, client=f"client {client}", seed=seed)


@dataclass
class Host:
    """Some clients' learners. Each is touched by one task at a time, in the order of its client's chain."""

    make: Make
    global_test: Callable[[], Samples] | None = None
    strict: bool = False
    """Whether an event that diverges ends the run."""
    learners: dict[int, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _global: Samples = None
    _owners: dict[Any, int] = field(default_factory=dict)

    def run(self, client: int, operations: Sequence[Operation], inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Carry a task out; return the facts and the product of its last operation."""
        result: tuple[Any, Any] = (None, None)
        given = iter(inputs)
        for name, *arguments in operations:
            result = getattr(self, f"do_{name}")(client, given, *arguments)
        return result

    def do_build(self, client: int, _: Iterator[Any]) -> tuple[Facts, None]:
        """Make the learner. One at a time: initial weights come from PyTorch's own generator, of which there is one."""
        with self.lock:
            learner = self.learners[client] = self.make(client)
            self._check_own(client, learner)
        samples, schema = data.count(learner.task.train), learner.schema
        return Facts(learner.steps, learner.sizes(), samples, schema.size, schema, learner.frozen.fingerprints()), None

    def do_fold(self, client: int, given: Iterator[Any], weight: int, part: int) -> tuple[None, None]:
        """Merge a message early."""
        self.learners[client].fold(weight, part, next(given))
        return None, None

    def do_take(self, client: int, _: Iterator[Any]) -> tuple[None, None]:
        """Let an event begin."""
        self.learners[client].take()
        return None, None

    def do_put_back(self, client: int, _: Iterator[Any]) -> tuple[None, None]:
        """Undo the beginning of an event."""
        self.learners[client].put_back()
        return None, None

    def do_step(
        self,
        client: int,
        given: Iterator[Any],
        own: int,
        weights: Sequence[int],
        parts: Sequence[int],
        adopts: bool,
        encode: bool,
        measure: bool,
    ) -> tuple[Outcome, Any]:
        """Run a compute event; the payloads are the product."""
        models = list(map(Model._make, zip(weights, parts, given, strict=False)))
        learner = self.learners[client]
        step = learner.step if self.strict or not isinstance(learner, Learner) else learner.attempt
        outcome = step(Work(own, models, adopts), encode=encode, measure=measure)
        return outcome, outcome.payloads

    def do_encode(self, client: int, _: Iterator[Any]) -> tuple[None, Any]:
        """Encode the weights as they are."""
        return None, self.learners[client].encode()

    def do_evaluate(self, client: int, given: Iterator[Any], what: str, at: bool) -> tuple[Score, None]:
        """Score the model on the client's `own` test data or on the `global` one; `at` other weights than its own."""
        learner = self.learners[client]
        samples = self._global_samples() if what == "global" else None
        if not at:
            return learner.evaluate(samples), None
        with rows.set_to(learner, next(given)):
            return learner.evaluate(samples), None

    def do_row(self, client: int, _: Iterator[Any]) -> tuple[None, torch.Tensor]:
        """Give the shared weights in one row."""
        return None, rows.row_of(self.learners[client])

    def do_folded(self, client: int, _: Iterator[Any]) -> tuple[None, torch.Tensor | None]:
        """Give the weighted sum of what was folded and not merged yet."""
        return None, rows.folded(self.learners[client])

    def do_add(
        self, client: int, given: Iterator[Any], models: list[tuple[float, str]], first: bool
    ) -> tuple[None, torch.Tensor]:
        """Add weighted rows or payloads to a sum, or begin one: the reference model is made of such sums."""
        learner = self.learners[client]
        total = torch.zeros(learner.schema.size, dtype=torch.float64) if first else next(given).clone()
        for weight, kind in models:
            rows.add(total, weight, kind, next(given), learner)
        return None, total

    def do_distance(self, client: int, given: Iterator[Any]) -> tuple[float, None]:
        """Measure how far the client's weights are from a row: the squared norm."""
        own = rows.row_of(self.learners[client]).double()
        return float((own - next(given)).square().sum()), None

    def do_apart(self, _client: int, given: Iterator[Any]) -> tuple[float, None]:
        """Measure how far two rows are apart: the squared norm."""
        return float((next(given) - next(given)).square().sum()), None

    def do_norm2(self, _client: int, given: Iterator[Any]) -> tuple[float, None]:
        """Measure a row: the squared norm."""
        return float(next(given).square().sum()), None

    def do_difference(self, client: int, given: Iterator[Any]) -> tuple[float, None]:
        """Measure how far two whole messages are apart: the norm."""
        one, other = (rows.decoded(next(given)[0], self.learners[client]) for _ in range(2))
        return float((one - other).norm()), None

    def do_gradient(self, client: int, given: Iterator[Any]) -> tuple[float, torch.Tensor]:
        """Give the loss over all the client's training data, and its gradient, at other weights than its own."""
        learner = self.learners[client]
        with rows.set_to(learner, next(given)):
            return rows.gradient(learner)

    def do_save(self, client: int, _: Iterator[Any]) -> tuple[State, None]:
        """Give everything."""
        return self.learners[client].save(), None

    def do_restore(self, client: int, _: Iterator[Any], state: State) -> tuple[None, None]:
        """Take over what was saved."""
        self.learners[client].restore(state)
        return None, None

    def do_crash(self, client: int, _: Iterator[Any]) -> tuple[None, None]:
        """Lose what was not committed: all that was folded since the last event."""
        learner = self.learners[client]
        learner.restore(learner.save(whole=False))
        return None, None

    def _check_own(self, client: int, learner: Any) -> None:
        """Refuse a model that changes another client's tensors, too."""
        if not isinstance(learner, Learner):
            return
        learner.model.train()  # shows which norms stay as they are
        for name, tensor in changing_tensors(learner.model, learner.schema):
            if tensor.numel():
                owner = self._owners.setdefault((tensor.device, tensor.data_ptr()), client)
                if owner != client:
                    raise LearningError(
                        f"client {client}: {name} of its model is client {owner}'s own tensor: the task function must "
                        "make a new model for each client, by copy.deepcopy(model), say"
                    )

    def _global_samples(self) -> Samples:
        with self.lock:
            if self._global is None and self.global_test is not None:
                self._global = self.global_test()
        return self._global
