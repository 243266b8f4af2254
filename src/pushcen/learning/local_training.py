"""The steps that a client trains in one event, on its own data, with an error that says where one failed."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from pushcen.errors import DivergenceError, OptionError, TaskError
from pushcen.learning import samples as data
from pushcen.learning.collation import Batch, Collation
from pushcen.learning.event_steps import Batches, EventOptimiser, FitLearner
from pushcen.learning.flops import StepCost, shape_of
from pushcen.learning.mistakes import blaming, form_of, has_nan
from pushcen.learning.modules import number_type
from pushcen.learning.noise import unseen
from pushcen.learning.outputs import IGNORED, Evaluated, evaluated, opened
from pushcen.learning.samples import Samples
from pushcen.learning.task import Task, one_loss
from pushcen.learning.training import TrainingOptions
from pushcen.learning.update import Update


class LocalTraining:
    """A client's model, data and loss: runs the optimiser's steps of an event, with the update's hooks around each.

    >>> model, draw = nn.Linear(4, 2), np.random.default_rng(1)
    >>> task = Task(model, (torch.randn(64, 4), torch.randint(2, (64,))))
    >>> local = LocalTraining(task, model, list(model.parameters()), TrainingOptions(batch=16), "client 7")
    >>> loss, steps = local.run(torch.optim.SGD(model.parameters()), Update(), draw, event=1)
    >>> steps, local.cost.total
    (4, 2048.0)
    """

    def __init__(
        self, task: Task, model: nn.Module, trained: Sequence[nn.Parameter], training: TrainingOptions, client: str
    ) -> None:
        self._model, self._trained = model, trained
        self._training, self._client = training, client
        self._device = next(iter(trained)).device
        self._collation = Collation(model, task.collate, brings_loss=task.brings_loss)
        self._brings_loss = task.brings_loss
        self._task = _smoothed(task, model, training, client, own_loss=self._collation.labels or task.brings_loss)
        self._gather = self.gatherer(task.train, f"the training data of {client}")
        self._number = number_type(model)
        self.samples = data.count(task.train)
        self.cost = StepCost(model, task.fit)
        """What the newest event's steps cost."""
        if task.fit and training.micro_batch:
            raise OptionError(
                f"training.micro_batch = {training.micro_batch!r}: {client}: must be 0 where the task has its own fit"
            )
        self.together = training.batch if self._collation.labels else 512
        """How many samples are evaluated at once; of a language model that is a score for each token and word."""
        for name, samples in (("training", task.train), ("test", task.test)):
            with blaming(what := f"the {name} data of {client}", ()):
                data.check_lengths(samples, what, self._collation)

    def run(
        self, optimiser: torch.optim.Optimizer, update: Update, draw: np.random.Generator, event: int
    ) -> tuple[float, int]:
        """Train for an event, in an order that `draw` decides; return the mean loss and the number of steps."""
        self._model.train()
        self._update = update
        update.start(self._model)
        self.cost.total = 0.0
        planned = self._training.steps(self.samples)
        stepping = EventOptimiser(optimiser, update, self._trained, self._training, self._client, event, planned)
        if self._task.fit is None:
            total = 0.0
            for rows in self._rows(draw):
                total += self._gradient(stepping, rows)
                stepping.step()
            loss = total / stepping.steps
        else:
            loss = self._fit(self._task.fit, stepping, draw, event, planned)
        stepping.zero_grad()
        update.end()
        return loss, stepping.steps

    def _rows(self, draw: np.random.Generator) -> Iterator[torch.Tensor]:
        """Yield the numbers of the samples of each batch of an event."""
        batch = self._training.batch
        for _ in range(self._training.epochs):
            order = torch.from_numpy(draw.permutation(self.samples))
            yield from order[: max(self.samples // batch, 1) * batch].split(batch)  # type: ignore[no-untyped-call]

    def _gradient(self, optimiser: EventOptimiser, rows: torch.Tensor) -> float:
        """Set the gradients to those of a batch, a piece of it at a time; return its loss."""
        optimiser.zero_grad()
        total, size, where = 0.0, self._training.micro_batch, optimiser.where
        for piece in rows.split(size) if size else (rows,):  # type: ignore[no-untyped-call]
            with blaming(where, ()):
                inputs, targets = self.on_device(self._gather(piece))
            with blaming(where, self._trained, (inputs, targets)):
                backward = partial(self._backward, inputs, targets, piece.shape[0] / rows.shape[0])
                value = float(self.cost.run(shape_of(inputs), backward))
            self._check_finite(value, where, (inputs, targets))
            total += value
        return total

    def _backward(self, inputs: Any, targets: Any, share: float) -> torch.Tensor:
        if self._collation.labels and isinstance(targets, torch.Tensor) and bool((targets == IGNORED).all()):
            raise DivergenceError(f"{self._client}: all labels of a batch are {IGNORED}, which no loss counts")
        loss = self._update.loss(self._model, self.loss, inputs, targets)
        loss = loss if share == 1 else loss * share
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _fit(self, fit: Any, optimiser: EventOptimiser, draw: np.random.Generator, event: int, planned: int) -> float:
        """Let the task's own function train, and check that it has; return the loss that it gives."""

        def gather(rows: torch.Tensor) -> Any:
            with blaming(optimiser.where, ()):
                return self.on_device(self._gather(rows))

        batches = Batches(lambda: self._rows(draw), gather, planned, self.cost)
        learner = FitLearner(self._model, optimiser, self._task, self._training, self._client, event, self.loss)
        try:
            loss = fit(learner, batches)
        except Exception as error:
            with blaming(optimiser.where, self._trained, batches.newest):
                raise error
        finally:
            batches.close()
        where = f"{self._client}, event {event}"
        if not optimiser.steps:
            raise TaskError(f"{where}: the task's fit made no step: learner.optimiser.step() must change the weights")
        if not isinstance(loss, int | float | np.number) and not (isinstance(loss, torch.Tensor) and loss.numel() == 1):
            given = f"a tensor {form_of(loss)}" if isinstance(loss, torch.Tensor) else f"{loss!r:.40}"
            raise TaskError(f"{where}: the task's fit gave {given}: must be one number, the mean loss")
        value = float(loss.detach() if isinstance(loss, torch.Tensor) else loss)
        self._check_finite(value, where, batches.newest)
        return value

    def _check_finite(self, loss: float, where: str, batch: Any) -> None:
        if not math.isfinite(loss):
            why = "the batch has NaN" if has_nan(batch) else "a smaller training.lr may help"
            raise DivergenceError(f"{where}: the loss is {loss}; {why}")

    def gatherer(self, samples: Samples, what: str) -> Callable[[torch.Tensor], Batch]:
        """Return what makes a batch of row numbers, for this client's model; `what` names the samples."""
        return data.gatherer(samples, what, self._collation)

    def loss(self, inputs: Any, targets: Any, model: nn.Module | None = None) -> tuple[torch.Tensor, Any]:
        """Return the loss and the outputs; the loss too under autocast, which knows what needs all of float32.

        A model that takes labels gets the targets, unless the user brings a loss. Of outputs with a loss, the logits
        are returned.
        """
        own, model = self._brings_loss, model or self._model
        labels = {"labels": targets} if self._collation.labels and targets is not None and not own else {}
        with self._precision():
            if isinstance(inputs, dict):
                outputs = model(**inputs, **labels)
            else:
                several = inputs if isinstance(inputs, tuple | list) else (inputs,)
                outputs = model(*several, **labels)
            outputs, loss = opened(outputs, labelled=bool(labels))
            if loss is None and targets is None and not own:
                raise TaskError(
                    f"{self._client}: the model returns no loss, and the samples have no labels: must have them, or "
                    "the Task a collate that makes them; a language model's are its input_ids, with -100 for padding"
                )
            if loss is None or own:
                loss = self._task.loss(outputs, targets)
        return one_loss(loss, self._client), outputs

    def _precision(self) -> AbstractContextManager[Any]:
        """Return autocast as it is asked for; where it is off already, nothing, which costs nothing."""
        wanted, kind = self._training.autocast == "bfloat16", self._device.type
        if not wanted and not torch.is_autocast_enabled(kind):
            return nullcontext()
        return torch.autocast(kind, torch.bfloat16, enabled=wanted)

    def evaluate(self, inputs: Any, targets: Any, samples: int, model: nn.Module | None = None) -> Evaluated:
        """Return what the model makes of a batch of so many samples, by token where its labels are."""
        loss, outputs = self.loss(inputs, targets, model)
        if not self._collation.labels:
            return Evaluated(outputs, targets, float(loss), samples)
        return evaluated(outputs, targets, float(loss), samples)

    def on_device(self, batch: Any) -> Any:
        """Bring a batch to where the model is; what is float64 takes the model's own type."""
        with unseen():
            return data.to_device(batch, self._device, self._number)


def _smoothed(task: Task, model: nn.Module, training: TrainingOptions, client: str, *, own_loss: bool) -> Task:
    """Return the task with a loss that smooths labels while the model trains, if that is asked for."""
    smoothing = training.label_smoothing
    if not smoothing:
        return task
    if own_loss or task.loss is not nn.functional.cross_entropy:
        raise OptionError(
            f"training.label_smoothing = {smoothing!r}: {client}: must be 0 where task or model has its own loss"
        )

    def loss(outputs: Any, targets: Any) -> torch.Tensor:
        amount = smoothing if model.training else 0.0
        return nn.functional.cross_entropy(outputs, targets, label_smoothing=amount)

    return replace(task, loss=loss)
