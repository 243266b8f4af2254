"""SpaFL's local update: a trained threshold prunes every filter that stays below it; thresholds alone travel."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from pushcen.checks import check_number
from pushcen.codec import Accumulator, Payload, Schema
from pushcen.errors import OptionError, TaskError
from pushcen.learning.rows import row_of
from pushcen.learning.task import Task
from pushcen.learning.training import TrainingOptions
from pushcen.learning.update import Update
from pushcen.learning.work import State, Work

FEWEST = 0.01
"""A layer that keeps no larger share of its filters begins again, with thresholds of zero."""
_WEIGHT, _THRESHOLD = (
    "parametrizations.weight.original",
    "parametrizations.weight.0.threshold",
)  # what PyTorch calls them


class Pruned(nn.Module):
    """What a layer uses in place of its weight: the same, with zeros in filters whose threshold is not reached.

    Where a filter is kept, the gradient of the loss goes on to its weights; where it is pruned, it does not. A
    threshold gets, for either, minus the sum of gradient times weight over its filter: as if being kept were the
    difference between mean and threshold itself, and not its sign (straight-through).

    >>> pruned = Pruned(torch.tensor([[1.0, -3.0], [1.0, 1.0]]))
    >>> _ = nn.init.constant_(pruned.threshold, 2.0)
    >>> pruned(torch.tensor([[1.0, -3.0], [1.0, 1.0]])).tolist()
    [[1.0, -3.0], [0.0, 0.0]]
    """

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.threshold = nn.Parameter(weight.new_zeros(len(weight)))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the weight as it is used."""
        straight = self.threshold.detach() - self.threshold  # zero, and its gradient is -1
        return weight * _column(_kept(weight, self.threshold) + straight, weight)


class ThresholdUpdate(Update):
    """Trains weights and thresholds, and averages thresholds. Weights follow what averaging makes of these.

    `strength` is that of the penalty which makes thresholds grow, alpha in the paper.
    """

    def __init__(self, strength: float) -> None:
        check_number("strength", strength)
        self._strength = strength
        self._layers: list[nn.Module] = []

    def adapt(self, task: Task, client: str) -> Task:
        """Add thresholds to every convolution and linear layer that would be shared; they are shared in its place."""
        names = []
        for path, layer, weight in _layers_of(task, client):
            parametrize.register_parametrization(layer, "weight", Pruned(weight.detach()))
            self._layers.append(layer)
            names.append(path + _THRESHOLD)
        if not names:
            raise TaskError(
                f"{client}: spafl prunes filters of convolutions and linear layers: the model must have, and share, one"
            )
        return replace(task, share=frozenset(names).__contains__)

    def prepare(self, schema: Schema, training: TrainingOptions, rng: np.random.Generator) -> None:
        """Refuse to share anything but thresholds."""
        super().prepare(schema, training, rng)
        if training.batch_norm != "local":
            raise OptionError(
                f"training.batch_norm = {training.batch_norm!r}: spafl sends thresholds and nothing else; must be local"
            )

    def meet(self, model: nn.Module) -> None:
        """Note the thresholds that all start from."""
        super().meet(model)
        self._merged = row_of(self.schema, model).cpu()

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Average the thresholds; move each filter against what its own has changed by since the last average."""
        super().mix(model, work, messages, folded)
        if folded is None and not messages:
            return
        before, self._merged = self._merged, row_of(self.schema, model).cpu()
        changes = (self._merged - before).split([len(threshold) for _, threshold in self._pairs()])  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for (weight, _), change in zip(self._pairs(), changes, strict=True):
                over = weight.shape[1] if weight.dim() == 2 else weight[0, 0].numel()
                weight -= _column(weight.flatten(1).sum(1).sign() * change.to(weight) / over, weight)

    def start(self, model: nn.Module) -> None:  # noqa: ARG002
        """Restart a layer of which averaging has left nothing."""
        self.after_step()

    def before_step(self) -> None:
        """Add the gradient of the penalty."""
        for _, threshold in self._pairs():
            if threshold.grad is not None:
                threshold.grad.sub_(threshold.detach().neg().exp(), alpha=self._strength)

    def after_step(self) -> None:
        """Restart a layer of which next to nothing is left."""
        for weight, threshold in self._pairs():
            if int(_kept(weight, threshold).sum()) <= FEWEST * len(threshold):
                nn.init.zeros_(threshold)

    @property
    def density(self) -> float:
        """The share of weights in filters that are kept."""
        kept = sum(int(_kept(weight, threshold).sum()) * weight[0].numel() for weight, threshold in self._pairs())
        return kept / self._size

    def flops(self, steps: int) -> float:
        """Count 6 a weight and step: 2 for the mean, 1 for the mask, 3 for gradients. Zeros are multiplied as ever."""
        return 6.0 * steps * self._size

    def exported(
        self,
        tensors: Mapping[str, torch.Tensor],
        *,
        shared: bool = False,  # noqa: ARG002
    ) -> dict[str, torch.Tensor]:
        """Return the pruned weights by their own names, and no thresholds."""
        found = dict(tensors)
        for path in [name.removesuffix(_THRESHOLD) for name in tensors if name.endswith(_THRESHOLD)]:
            weight, threshold = found.pop(path + _WEIGHT), found.pop(path + _THRESHOLD)
            found[f"{path}weight"] = weight * _column(_kept(weight, threshold), weight)
        return found

    def save(self, whole: bool = True) -> State:
        """Return what the last average was; the thresholds themselves are a part of the model."""
        tensors, plain = super().save(whole)
        return State({**tensors, "merged": self._merged}, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self._merged = state.tensors["merged"].clone()

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the weight as it is trained, and the thresholds, of each layer."""
        for layer in self._layers:
            held = dict(layer.named_parameters())
            yield held[_WEIGHT], held[_THRESHOLD]

    @property
    def _size(self) -> int:
        return sum(weight.numel() for weight, _ in self._pairs())


def _layers_of(task: Task, client: str) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
    """Yield the layers that are pruned, each behind the beginning of its tensors' names; refuse frozen ones."""
    modules = list(task.model.named_modules())
    held = Counter(id(one) for _, module in modules for one in module.parameters(recurse=False))
    for name, module in modules:
        weight, path = module._parameters.get("weight"), f"{name}." if name else ""
        if weight is None or not isinstance(module, nn.Linear | _ConvNd) or isinstance(module, _ConvTransposeNd):
            continue
        if is_lazy(weight):
            raise TaskError(f"{client}: {path}weight has no shape yet: must have one; run the model once on a batch")
        if not weight.requires_grad:
            raise TaskError(
                f"{client}: {path}weight is frozen, as under an adapter, and spafl prunes whole filters: must train; "
                "push-sum, say, sends what trains and nothing else"
            )
        if held[id(weight)] == 1 and (task.share is None or task.share(f"{path}weight")):  # else tied, or private
            yield path, module, weight


def _kept(weight: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
    """Return a 1 for each filter whose mean of absolute weights reaches its threshold, and a 0 for the others."""
    return (weight.detach().abs().flatten(1).mean(1) >= threshold.detach()).to(weight.dtype)


def _column(numbers: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return a number for each filter in a shape that a weight can be multiplied with."""
    return numbers.view(-1, *(1 for _ in weight.shape[1:]))
