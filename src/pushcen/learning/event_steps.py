"""What is around every optimiser step of an event, and what a user's own loop works with."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from pushcen.errors import TaskError
from pushcen.learning.flops import StepCost, shape_of
from pushcen.learning.noise import unseen
from pushcen.learning.optimiser_state import remembered
from pushcen.learning.task import Task
from pushcen.learning.training import TrainingOptions
from pushcen.learning.update import Update
from pushcen.memory import move_apart


class EventOptimiser:
    """The optimiser in one event. Its `step` is all of a step: the schedule's rate, clipping, the method's hooks.

    >>> model = nn.Linear(2, 1)
    >>> trained = list(model.parameters())
    >>> optimiser = EventOptimiser(torch.optim.SGD(trained), Update(), trained, TrainingOptions())
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> optimiser.step()
    >>> optimiser.steps
    1
    """

    def __init__(
        self,
        optimiser: torch.optim.Optimizer,
        update: Update,
        trained: Sequence[nn.Parameter],
        training: TrainingOptions,
        client: str = "the client",
        event: int = 1,
        planned: int = 1,
    ) -> None:
        self._optimiser, self._update, self._trained = optimiser, update, trained
        self._clip, self._schedule = training.clip, None if training.schedule.flat else training.schedule
        self._client, self._event, self._planned = client, event, planned
        self._one_pass: Callable[[], bool] | None = None
        self.steps = 0
        """How many there were in this event."""

    @property
    def where(self) -> str:
        """Whose step comes next, and which it is."""
        return f"{self._client}, event {self._event}, step {self.steps + 1}"

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The optimiser's own."""
        return self._optimiser.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: ARG002
        """Release all gradients."""
        with unseen():
            self._optimiser.zero_grad()

    def step(self) -> None:
        """Change the weights by their gradients."""
        if self._schedule is not None:
            rate = self._schedule.rate(self._event, self.steps, self._planned)
            for group in self._optimiser.param_groups:
                group["lr"] = group.setdefault("initial_lr", group["lr"]) * rate
        if self._clip:
            clip_grad_norm_(self._trained, self._clip)
        with unseen():
            if not self.steps:
                self._one_pass = self._update.one_pass(self._optimiser)
            together = self._one_pass is not None and self._one_pass()
        if not together:
            self._step_by_step()
        self.steps += 1

    def _step_by_step(self) -> None:
        self._update.before_step()
        try:
            with unseen():
                self._optimiser.step()
                if not self.steps:  # by now it remembers all that it will
                    move_apart(remembered(self._optimiser))
        except Exception as error:  # such as that of most optimisers on sparse gradients
            raise TaskError(f"{self.where}: {type(self._optimiser).__name__}: {error}") from error
        self._update.after_step()


class Batches:
    """The batches of an event, `(inputs, targets)`, on the client's device, in an order that its own stream decides.

    Iterated once more, they come in another order.
    """

    def __init__(
        self, rows: Callable[[], Iterator[Any]], gather: Callable[[Any], Any], planned: int, cost: StepCost
    ) -> None:
        self._rows, self._gather, self._planned, self._cost = rows, gather, planned, cost
        self._open: Generator[tuple[Any, Any], None, None] | None = None
        self.newest: Any = None
        """The batch that was taken last."""

    def __len__(self) -> int:
        return self._planned

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        self.close()
        self._open = self._taken()
        return self._open

    def _taken(self) -> Generator[tuple[Any, Any], None, None]:
        for rows in self._rows():
            self.newest = self._gather(rows)
            with self._cost.counting(shape_of(self.newest[0])):  # until the next one is asked for
                yield self.newest

    def close(self) -> None:
        """Count no more operations, wherever the loop has ended."""
        if self._open is not None:
            self._open.close()


@dataclass(frozen=True)
class FitLearner:
    """What a task's `fit` works with: change the weights by `optimiser.step()` alone, and all else is taken care of."""

    model: nn.Module
    optimiser: EventOptimiser
    task: Task
    training: TrainingOptions
    client: str
    event: int
    """Which of the client's events it is, from 1 on."""
    _loss: Callable[[Any, Any], tuple[torch.Tensor, Any]]

    def loss(self, inputs: Any, targets: Any) -> torch.Tensor:
        """Return the loss of a batch, by the task's own function, under autocast if that is on."""
        return self._loss(inputs, targets)[0]
