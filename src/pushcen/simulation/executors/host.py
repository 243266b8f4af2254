"""The place where learners live: makes them, and runs the jobs that the simulation asks of them.

Threads share one host; on a cluster each actor has its own.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pushcen.errors import LearningError
from pushcen.learning import Learner, Samples, SparsityOptions, TaskFunction, TrainingOptions, build_task, sparse
from pushcen.learning.frozen import Held
from pushcen.learning.modules import changing_tensors
from pushcen.learning.resting import awake, rest
from pushcen.memory import give_back_freed_blocks
from pushcen.methods import Method
from pushcen.simulation.jobs import Job, Result
from pushcen.simulation.options.clients import client_training
from pushcen.streams import seed_of

if TYPE_CHECKING:
    from pushcen.simulation.options import World


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
    sparsity: SparsityOptions | None = None
    validation: float = 0.0
    """The share of the training data that is held out."""

    @classmethod
    def of(cls, world: "World", task: TaskFunction) -> "MakeLearner":
        """Return what makes the learners of a world."""
        held_out = world.neighbours.held_out
        return cls(task, world.method, world.training, world.clients, world.seed, world.sparsity, held_out)

    def __call__(self, client: int) -> Learner:
        """Make a client's learner. All start from the same weights."""
        task = build_task(self.task, client, self.clients, seed_of(self.seed, "initial weights"))
        seed = seed_of(self.seed, "learner", client)
        training = client_training(self.training, client, self.seed)
        update = sparse(self.method.update(), self.sparsity, type(self.method).name)
        name, held_out = f"client {client}", self.validation
        return Learner(task, update, training, client=name, seed=seed, validation=held_out)


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
    _frozen: Held = field(default_factory=dict)

    def run(self, client: int, jobs: Sequence[Job], inputs: Sequence[Any]) -> Result:
        """Run a task; return the facts and the product of its last job."""
        result: Result = (None, None)
        given, learner = iter(inputs), self.learners.get(client)
        with awake(learner.model) if isinstance(learner, Learner) else nullcontext():
            for job in jobs:
                result = job.run(self, client, given)
        return result

    def build(self, client: int) -> Any:
        """Make a learner. One at a time: initial weights come from PyTorch's own generator, of which there is one.

        What is frozen alike in all their models is held once: from the second on, all but what trains is freed at once.
        Between its jobs a learner's model rests.
        """
        with self.lock, give_back_freed_blocks() if self._frozen else nullcontext():
            learner = self.learners[client] = self.make(client)
            if isinstance(learner, Learner):
                self._check_own(client, learner)
                learner.frozen.share(self._frozen)
                rest(learner.model)
        return learner

    def global_samples(self) -> Samples:
        """Return the global test set, which is loaded once."""
        with self.lock:
            if self._global is None and self.global_test is not None:
                self._global = self.global_test()
        return self._global

    def _check_own(self, client: int, learner: Learner) -> None:
        """Refuse a model that changes another client's tensors, too."""
        learner.model.train()  # shows which norms stay as they are
        for name, tensor in changing_tensors(learner.model, learner.schema):
            if tensor.numel():
                owner = self._owners.setdefault((tensor.device, tensor.data_ptr()), client)
                if owner != client:
                    raise LearningError(
                        f"client {client}: {name} of its model is client {owner}'s own tensor: the task function must "
                        "make a new model for each client, by copy.deepcopy(model), say"
                    )
