"""What a model returns: a tensor, or `loss` and `logits` together, as the models of transformers do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy

IGNORED = -100
"""The label that a loss leaves out: of padding, above all."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What a model makes of a batch, for metrics."""

    logits: Any
    targets: Any
    loss: float
    """A mean."""
    count: int
    """What it is a mean over, and how many rows logits and targets have: samples, or tokens."""


def opened(outputs: Any, *, labelled: bool = False) -> tuple[Any, torch.Tensor | None]:
    """Return the logits and the loss of a model's outputs; of what has no loss, all of it and None.

    With `labelled`, the model has got labels, and a tuple that begins with one number begins with a loss.

    >>> opened({"loss": 0.5, "logits": "scores"}), opened("scores")
    (('scores', 0.5), ('scores', None))
    >>> opened((torch.tensor(0.5), "scores"), labelled=True)
    ('scores', tensor(0.5000))
    """
    if isinstance(outputs, Mapping) and "loss" in outputs:
        return outputs.get("logits", outputs), outputs["loss"]
    if hasattr(outputs, "loss") and not callable(outputs.loss):
        return getattr(outputs, "logits", outputs), outputs.loss
    if labelled and isinstance(outputs, tuple) and len(outputs) > 1:
        first = outputs[0]
        if isinstance(first, torch.Tensor) and first.dim() == 0:
            return outputs[1], first
    return outputs, None


def evaluated(logits: Any, targets: Any, loss: float, samples: int) -> Evaluated:
    """Return the batch of a model that takes labels, by token where a sample has many, without those that are -100.

    A language model's loss compares its outputs with the labels one place further. Whether this one's does is told by
    the loss itself.

    >>> scores, labels = torch.randn(2, 3, 9), torch.tensor([[4, 5, 6], [7, 8, IGNORED]])
    >>> shifted = cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    >>> found = evaluated(scores, labels, float(shifted), samples=2)
    >>> found.targets, found.logits.shape, found.count
    (tensor([5, 6, 8]), torch.Size([3, 9]), 3)
    """
    whole = isinstance(targets, torch.Tensor) and isinstance(logits, torch.Tensor) and not targets.is_floating_point()
    if whole and _by_token(logits, targets):
        logits = logits[:, logits.shape[1] - targets.shape[1] :]  # prompts that are tuned come first, with no label
        ways = [_counted(logits, targets), _counted(logits[:, :-1], targets[:, 1:])]
        logits, targets = min(ways, key=lambda way: _distance(way[0], way[1], loss))
        samples = len(targets)
    elif whole and targets.dim() == 1 and logits.dim() == 2:
        logits, targets = _counted(logits, targets)
        samples = len(targets)
    return Evaluated(logits, targets, loss if samples else 0.0, samples)


def _by_token(logits: torch.Tensor, targets: torch.Tensor) -> bool:
    """Return whether there are scores [samples, tokens, classes] for labels [samples, tokens]."""
    if targets.dim() != 2 or logits.dim() != 3 or len(logits) != len(targets):
        return False
    _, tokens, classes = logits.shape
    length = targets.shape[1]
    return tokens == length or (tokens > length and classes != length)


def _counted(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    kept = targets != IGNORED
    return logits[kept], targets[kept]


def _distance(logits: torch.Tensor, targets: torch.Tensor, loss: float) -> float:
    found = abs(float(cross_entropy(logits.float(), targets)) - loss) if len(targets) else math.inf
    return math.inf if math.isnan(found) else found
