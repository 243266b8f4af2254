"""What outputs and targets mean to a metric: a class each, labels that apply or not, or numbers."""

import functools
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from pushcen.learning.mistakes import form_of

CLASSES = (functional.cross_entropy, functional.nll_loss, nn.CrossEntropyLoss, nn.NLLLoss)
"""Losses of a score for each class."""
LOGITS = (
    functional.binary_cross_entropy_with_logits,
    functional.multilabel_soft_margin_loss,
    nn.BCEWithLogitsLoss,
    nn.MultiLabelSoftMarginLoss,
)
"""Losses of outputs that say yes above 0."""
PROBABILITIES = (functional.binary_cross_entropy, nn.BCELoss)
"""Losses of outputs that say yes above a half."""
NUMBERS = (
    functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss,
    nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss,
)  # fmt: skip
"""Losses of numbers."""


def is_one_of(loss: Any, kinds: tuple[Any, ...]) -> bool:
    """Return whether a loss is one of PyTorch's, as a function, a module, or either with options.

    >>> is_one_of(nn.MSELoss(), NUMBERS), is_one_of(functools.partial(functional.mse_loss), NUMBERS)
    (True, True)
    >>> is_one_of(lambda outputs, targets: outputs.sum(), NUMBERS)
    False
    """
    while isinstance(loss, functools.partial):
        loss = loss.func
    return any(loss is kind or (isinstance(kind, type) and isinstance(loss, kind)) for kind in kinds)


class Meaning(NamedTuple):
    """What a loss says about the outputs that it is for."""

    classes: bool = False
    """Whether they are a score for each class, of which one is right."""
    threshold: float | None = None
    """Above which an output says yes, if each is yes or no."""
    ignored: int = -100
    """The target that is left out."""

    @classmethod
    def of(cls, loss: Any) -> "Meaning":
        """Return what is known of a loss; None is one that the model brings, whose outputs are logits.

        >>> Meaning.of(nn.BCELoss()).threshold, Meaning.of(nn.CrossEntropyLoss(ignore_index=255)).ignored
        (0.5, 255)
        """
        threshold = 0.0 if loss is None or is_one_of(loss, LOGITS) else 0.5 if is_one_of(loss, PROBABILITIES) else None
        ignored = getattr(loss, "keywords", {}).get("ignore_index", getattr(loss, "ignore_index", -100))
        return cls(is_one_of(loss, CLASSES), threshold, ignored if isinstance(ignored, int) else -100)


class Decisions(NamedTuple):
    """What a model decided, row by row: scores [rows, classes], and the right class of each row."""

    scores: torch.Tensor
    truth: torch.Tensor
    """[rows], or [rows, labels] of booleans where each label is a decision of its own."""
    threshold: float | None = None
    """Above which score a label is taken to apply, if that is known."""

    @property
    def single(self) -> bool:
        """Whether every row has one right class."""
        return self.truth.dim() == 1

    def said(self, metric: str) -> torch.Tensor:
        """Return what the model says, in the form of `truth`."""
        if self.single:
            return self.scores.argmax(-1)
        if self.threshold is None:
            raise ValueError(
                f"{metric} needs a score for each class, [samples, classes], or, for outputs that are yes or no, a "
                "loss that says from where on they are yes: BCEWithLogitsLoss (0) or BCELoss (a half)"
            )
        return self.scores > self.threshold


def decisions(outputs: Any, targets: Any, meaning: Meaning, metric: str) -> Decisions:
    """Return outputs as decisions; positions whose target the loss ignores (-100) are left out.

    Classes are the second dimension, as for PyTorch's losses, or else the last; or each output has a target of its own.

    >>> pixels = decisions(torch.zeros(2, 5, 4, 4), torch.zeros(2, 4, 4).long(), Meaning(classes=True), "f1")
    >>> pixels.scores.shape, pixels.truth.shape
    (torch.Size([32, 5]), torch.Size([32]))
    >>> decisions(torch.zeros(3), torch.tensor([0.1, 0.2, 0.4]), Meaning(), "auroc")
    Traceback (most recent call last):
    ValueError: the outputs are [3] float32, and a target is 0.1...: auroc needs a score for each class, ...
    """
    _check_tensors(outputs, targets, metric)
    if (aligned := align(outputs, targets)) is not None:
        if meaning.classes and targets.dim() > 1 and targets.shape[1] > 1:  # targets are distributions
            return Decisions(_rows(outputs, 1), _rows(targets, 1).argmax(-1))
        return _labels(aligned, targets, meaning, metric, form_of(outputs))
    if targets.is_floating_point() or outputs.dim() != targets.dim() + 1:
        dim = None
    elif outputs.shape[:1] + outputs.shape[2:] == targets.shape:
        dim = 1
    else:
        dim = -1 if outputs.shape[:-1] == targets.shape else None
    if dim is None:
        raise ValueError(
            f"the outputs are {form_of(outputs)}, the targets {form_of(targets)}: {metric} needs a score for each "
            "class, [samples, classes], and whole numbers, [samples]; or targets of 0 and 1, of the outputs' form"
        )
    scores, truth = _rows(outputs, dim), targets.reshape(-1).long()
    if bool((left_out := truth == meaning.ignored).any()):
        scores, truth = scores[~left_out], truth[~left_out]
    if metric != "accuracy" and len(truth) and not 0 <= int(truth.min()) <= int(truth.max()) < scores.shape[1]:
        wrong = int(truth.min() if truth.min() < 0 else truth.max())
        raise ValueError(f"a target is {wrong}: must be from 0 to {scores.shape[1] - 1}, by the outputs' classes")
    return Decisions(scores, truth)


def numbers(outputs: Any, targets: Any, metric: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs and targets as numbers of one form.

    >>> numbers(torch.zeros(3, 1), torch.ones(3), "rmse")[0].shape
    torch.Size([3])
    >>> numbers(torch.zeros(3, 2), torch.ones(3), "rmse")
    Traceback (most recent call last):
    ValueError: the outputs are [3, 2] float32, the targets [3] float32: rmse needs both in one form
    """
    _check_tensors(outputs, targets, metric)
    if (aligned := align(outputs, targets)) is None or aligned.is_complex():
        raise ValueError(
            f"the outputs are {form_of(outputs)}, the targets {form_of(targets)}: {metric} needs both in one form"
        )
    return aligned.detach().cpu().double(), targets.cpu().double()


def mean_squared_error(outputs: Any, targets: Any) -> torch.Tensor:
    """Return the loss of a task whose targets are numbers, and which brings none.

    >>> mean_squared_error(torch.zeros(2, 1), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    aligned = align(outputs, targets) if isinstance(outputs, torch.Tensor) else None
    if aligned is None:
        raise ValueError(
            f"the targets are {form_of(targets)}, the outputs {form_of(outputs)}: numbers as targets need outputs of "
            "their form (the loss is then the mean squared error); classes are whole numbers, targets.long(); for "
            "anything else, give the Task a loss"
        )
    return functional.mse_loss(aligned, targets)


def align(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
    """Return the outputs in the targets' form, if they differ in dimensions of length one at most.

    >>> align(torch.zeros(4, 1), torch.zeros(4)).shape, align(torch.zeros(4, 3), torch.zeros(4))
    (torch.Size([4]), None)
    """
    if outputs.shape == targets.shape:
        return outputs
    same = outputs.dim() > 0 < targets.dim() and outputs.shape[0] == targets.shape[0]
    if same and [n for n in outputs.shape[1:] if n != 1] == [n for n in targets.shape[1:] if n != 1]:
        return outputs.reshape(targets.shape)
    return None


def _labels(outputs: torch.Tensor, targets: torch.Tensor, meaning: Meaning, metric: str, form: str) -> Decisions:
    yes = targets == 1
    if not bool((yes | (targets == 0)).all()):
        odd = targets[~(yes | (targets == 0))].flatten()[0].item()
        raise ValueError(
            f"the outputs are {form}, and a target is {odd:g}: {metric} needs a score for each class, "
            "[samples, classes], or targets of 0 and 1; for numbers there are rmse, mae and r2"
        )
    return Decisions(_rows(outputs, 1), _rows(yes, 1), meaning.threshold)


def _rows(values: torch.Tensor, dim: int) -> torch.Tensor:
    """Return [rows, classes], however classes lie; of a single dimension, one class."""
    if values.dim() < 2:
        return values.reshape(-1, 1)
    return values if values.dim() == 2 else values.movedim(dim, -1).flatten(0, -2)


def _check_tensors(outputs: Any, targets: Any, metric: str) -> None:
    if not isinstance(outputs, torch.Tensor) or not isinstance(targets, torch.Tensor):
        raise ValueError(
            f"the outputs are {form_of(outputs)}, the targets {form_of(targets)}: {metric} needs a tensor each; for "
            "anything else, give the Task a metric of its own"
        )
