"""The steps that a client trains in one event, on its own data, with an error that says where one failed."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from pushcen.errors import DivergenceError
from pushcen.learning import samples as data
from pushcen.learning.flops import StepCost, shape_of
from pushcen.learning.mistakes import blaming, has_nan
from pushcen.learning.modules import number_type
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
        self._task, self._model, self._trained = task, model, trained
        self._training, self._client = training, client
        self._device = next(iter(trained)).device
        self._gather = data.gatherer(task.train, f"the training data of {client}")
        self._number = number_type(model)
        self.samples = data.count(task.train)
        self.cost = StepCost(model)
        """What the newest event's steps cost."""

    def run(
        self, optimiser: torch.optim.Optimizer, update: Update, draw: np.random.Generator, event: int
    ) -> tuple[float, int]:
        """Train for an event, in an order that `draw` decides; return the mean loss and the number of steps."""
        self._model.train()
        update.start(self._model)
        batch, total, steps, self.cost.total = self._training.batch, 0.0, 0, 0.0
        for _ in range(self._training.epochs):
            order = torch.from_numpy(draw.permutation(self.samples))
            for begin in range(0, max(self.samples - batch, 0) + 1, batch):
                steps += 1
                where = f"{self._client}, event {event}, step {steps}"
                with blaming(where, ()):
                    inputs, targets = self.on_device(self._gather(order[begin : begin + batch]))
                with blaming(where, self._trained, (inputs, targets)):
                    backward = partial(self._backward, optimiser, inputs, targets)
                    value = float(self.cost.run(shape_of(inputs), backward))
                if not math.isfinite(value):
                    why = "the batch has NaN" if has_nan((inputs, targets)) else "a smaller training.lr may help"
                    raise DivergenceError(f"{where}: the loss is {value}; {why}")
                total += value
                update.before_step()
                optimiser.step()
                update.after_step()
        optimiser.zero_grad()
        update.end()
        return total / steps, steps

    def loss(self, inputs: Any, targets: Any) -> tuple[torch.Tensor, Any]:
        """Return the loss and the outputs; the loss too under autocast, which knows what needs all of float32."""
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._training.autocast == "bfloat16"):
            if isinstance(inputs, dict):
                outputs = self._model(**inputs)
            else:
                outputs = self._model(*inputs) if isinstance(inputs, tuple | list) else self._model(inputs)
            loss = self._task.loss(outputs, targets)
        return one_loss(loss, self._client), outputs

    def on_device(self, batch: Any) -> Any:
        """Bring a batch to where the model is; what is float64 takes the model's own type."""
        return data.to_device(batch, self._device, self._number)

    def _backward(self, optimiser: torch.optim.Optimizer, inputs: Any, targets: Any) -> torch.Tensor:
        optimiser.zero_grad()
        loss = self.loss(inputs, targets)[0]
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()
