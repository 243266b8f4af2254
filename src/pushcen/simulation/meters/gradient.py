"""The gradient at the reference model: the left side of the theorem, F there, and how much clients differ (zeta)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from pushcen.codec.clustering import flatten
from pushcen.learning import Learner
from pushcen.learning import samples as data
from pushcen.simulation import scores
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Host, Ticket
from pushcen.simulation.jobs import Job, set_to
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.reference import ROW, Add


@dataclass(frozen=True, slots=True)
class Gradient(Job):
    """Computes the loss over all the client's training data, and its gradient, at a row, which is the input."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[float, torch.Tensor]:
        """Return the loss; the gradient is the product."""
        learner = host.learners[client]
        with set_to(learner, next(inputs)):
            return gradient(learner)


@dataclass(frozen=True, slots=True)
class Apart(Job):
    """Measures how far two rows, which are the inputs, are apart: the squared norm."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[float, None]:  # noqa: ARG002
        """Return the distance."""
        return float((next(inputs) - next(inputs)).square().sum()), None


@dataclass(frozen=True, slots=True)
class Norm2(Job):
    """Measures a row, which is the input: the squared norm."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[float, None]:  # noqa: ARG002
        """Return the norm."""
        return float(next(inputs).square().sum()), None


class GradientMeter(Meter):
    """The squared norm of grad F at the reference, over all training data of those online; own BatchNorm for each."""

    name = "gradient"
    needs_reference = True
    saved = ("norms", "first", "zeta")

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.norms: list[float] = []
        self.first: float | None = None  # F at the first look
        self.zeta = 0.0

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:
        """Ask every client for its gradient, then for its distance from the mean of all."""
        if reference is None or not nodes:
            return Reading((), lambda _: {"gradient_norm2": None, "reference_objective": None, "zeta2": None})
        submit = self.engine.executor.submit
        gradients = [node.proxy.ask(Gradient(), reference) for node in nodes]
        mean = submit(nodes[0].index, [Add(((1 / len(nodes), ROW),) * len(nodes), first=True)], gradients)
        norm = submit(nodes[0].index, [Norm2()], [mean])
        apart = [submit(node.index, [Apart()], [own, mean]) for node, own in zip(nodes, gradients, strict=True)]
        return Reading([*gradients, norm, *apart], lambda found: self._finish(found, len(nodes)))

    def _finish(self, found: list[Any], count: int) -> dict[str, Any]:
        losses, norm, apart = found[:count], found[count], found[count + 1 :]
        objective = scores.mean(losses)
        if self.first is None:
            self.first = objective
        self.norms.append(norm)
        self.zeta = max(self.zeta, *apart)
        return {"gradient_norm2": norm, "reference_objective": objective, "zeta2": max(apart)}

    def summary(self) -> dict[str, Any]:
        """Return the mean over the rows, as the theorem has it."""
        return {
            "gradient_norm2": scores.mean(self.norms),
            "first_objective": self.first,
            "zeta2": self.zeta if self.norms else None,
        }


def gradient(learner: Learner) -> tuple[float, torch.Tensor]:
    """Compute the loss over all training data and its gradient, with the client's own BatchNorm statistics."""
    model, task, batch = learner.model, learner.task, learner.training.batch
    gather, count = learner.local.gatherer(task.train, "the training data"), data.count(task.train)
    tensors, shared = learner.schema.tensors(model), learner.update.shared(model)
    model.eval()
    model.zero_grad()
    total = 0.0
    for places in torch.arange(count).split(max(batch, 256)):  # type: ignore[no-untyped-call]
        inputs, targets = learner.local.on_device(gather(places))
        loss = learner.local.loss(inputs, targets, shared)[0] * (len(places) / count)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    row = torch.cat([flatten(torch.zeros_like(t) if t.grad is None else t.grad).cpu().double() for t in tensors])
    model.zero_grad()
    return total, row
