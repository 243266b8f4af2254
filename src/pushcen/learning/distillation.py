"""FedKD's local update: a teacher that stays at home and a student that travels learn from each other."""

import copy
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.functional import log_softmax, mse_loss

from pushcen.codec import Codec, LowRank
from pushcen.errors import OptionError, TaskError
from pushcen.learning.metrics import mean_squared_error
from pushcen.learning.mistakes import form_of, told
from pushcen.learning.noise import GENERATOR
from pushcen.learning.outputs import IGNORED
from pushcen.learning.task import Task
from pushcen.learning.update import CodedUpdate, LossOf
from pushcen.learning.work import State, part_of
from pushcen.locate import locate

_LEAST = 1e-6  # that losses of distillation are divided by


class Pair(nn.Module):
    """A teacher and a student. What is called, evaluated and exported is the teacher.

    `matching` brings the student's hidden states to the size of the teacher's, if sizes differ.
    """

    def __init__(self, teacher: nn.Module, student: nn.Module) -> None:
        super().__init__()
        self.teacher, self.student = teacher, student
        self.seen: list[torch.Tensor | None] = [None, None]
        self.matching: nn.Module | None = None
        one, other = _last_linear(teacher), _last_linear(student)
        if one is not None and other is not None:
            one.register_forward_pre_hook(self._noting(0))
            other.register_forward_pre_hook(self._noting(1))
            if one.in_features != other.in_features:
                self.matching = nn.Linear(other.in_features, one.in_features, bias=False)

    def _noting(self, at: int) -> Callable[[nn.Module, Any], None]:
        def note(_: nn.Module, inputs: Any) -> None:
            if self.training:
                self.seen[at] = inputs[0]

        return note

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return what the teacher does."""
        return self.teacher(*inputs, **named)

    def get_base_model(self) -> nn.Module:
        """Return the model whose inputs these are."""
        inner = self.teacher
        return inner.get_base_model() if hasattr(inner, "get_base_model") else inner  # type: ignore[operator]

    def hidden_loss(self) -> torch.Tensor | float:
        """Return how far what the last linear layers have been given is apart; 0 if it cannot be compared."""
        one, other = self.seen
        self.seen = [None, None]
        if one is None or other is None:
            return 0.0
        other = other if self.matching is None else self.matching(other)
        if one.shape != other.shape:
            return 0.0
        return mse_loss(one, other.detach()) + mse_loss(other, one.detach())


class DistillationUpdate(CodedUpdate):
    """Trains a pair, and sends the student, cut to a share of energy that rises over so many events of a client."""

    def __init__(self, student: str, energy_start: float, energy_end: float, rise_over: int, hidden: bool) -> None:
        for name, energy in (("energy_start", energy_start), ("energy_end", energy_end)):
            try:
                LowRank(energy)
            except OptionError as error:
                raise OptionError(str(error).replace("energy", name, 1)) from None
        super().__init__(LowRank(energy_start), moves=True)
        self._student, self._hidden = student, hidden
        if student and not callable(locate(student, "student")):
            raise OptionError(f"student = {student!r}: must be a function that makes a model of another")
        self._first, self._last, self._over = energy_start, energy_end, rise_over
        self._events = 0

    def adapt(self, task: Task, client: str) -> Task:
        """Put a student beside the task's model, which becomes its teacher; of both, only the student is shared."""
        if task.fit is not None:
            raise TaskError(f"{client}: fedkd trains two models at once: the task must have no fit of its own")
        if task.brings_loss or task.loss is mean_squared_error:
            raise TaskError(f"{client}: fedkd compares chances of classes: the task's loss must be cross-entropy")
        share = task.share
        return replace(task, model=_paired(task.model, self._student, client), share=lambda name: _travels(name, share))

    def shared(self, model: nn.Module) -> nn.Module:
        """Return the student."""
        assert isinstance(model, Pair)
        return model.student

    def loss(self, model: nn.Module, loss_of: LossOf, inputs: Any, targets: Any) -> torch.Tensor:
        """Return both losses of the task, and what both have to learn from each other over the sum of these."""
        assert isinstance(model, Pair)
        one, taught = loss_of(inputs, targets, model.teacher)
        other, learnt = loss_of(inputs, targets, model.student)
        apart = divergence(taught, learnt.detach(), targets) + divergence(learnt, taught.detach(), targets)
        hidden = model.hidden_loss()
        apart = apart + hidden if self._hidden else apart
        return one + other + apart / (one + other).detach().clamp(min=_LEAST)

    def start(self, model: nn.Module) -> None:  # noqa: ARG002
        """Count the event."""
        self._events += 1

    def codecs(self) -> dict[int, Codec]:
        """Send as much energy as it is time for."""
        passed = min(1.0, self._events / self._over)
        return {0: LowRank(self._first + (self._last - self._first) * passed)}

    def exported(self, tensors: Mapping[str, torch.Tensor], *, shared: bool = False) -> dict[str, torch.Tensor]:
        """Return the teacher, or the student."""
        return part_of("student" if shared else "teacher", dict(tensors))

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes."""
        tensors, plain = super().save(whole)
        return State(tensors, {**plain, "trained": self._events})

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self._events = state.plain["trained"]


def divergence(own: Any, of: Any, targets: Any) -> torch.Tensor:
    """Return the mean Kullback-Leibler divergence of chances of classes, by scores `own`, from those by scores `of`.

    >>> scores = torch.tensor([[1.0, 2.0], [0.0, 0.0]])
    >>> divergence(scores, scores, torch.tensor([0, 1])).item()
    0.0
    """
    by_class = _class_dimension(own, targets)
    mine, theirs = (log_softmax(scores.float(), by_class) for scores in (own, of))
    found = (theirs.exp() * (theirs - mine)).sum(by_class)
    return found.mean() if targets.is_floating_point() else found[targets != IGNORED].mean()


def _class_dimension(scores: Any, targets: Any) -> int:
    """Return along which dimension classes are: the last one, or the second, as `cross_entropy` has it."""
    if isinstance(scores, torch.Tensor) and isinstance(targets, torch.Tensor) and scores.dim() > 1:
        shape = scores.shape
        if not targets.is_floating_point() and targets.shape == shape[:-1] and shape[-1] > 1:
            return -1
        if targets.shape in (shape[:1] + shape[2:], shape) and shape[1] > 1:
            return 1
    raise TaskError(
        f"fedkd compares chances of classes: outputs {form_of(scores)} for targets {form_of(targets)} must be a score "
        "for each class"
    )


def _paired(teacher: nn.Module, student: str, client: str) -> Pair:
    """Return the task's model with a student, which is the same for all clients whose models begin alike."""
    if not student:
        return Pair(teacher, copy.deepcopy(teacher))
    make = locate(student, "student")
    with GENERATOR, torch.random.fork_rng(devices=[]):
        try:
            begins = next(teacher.parameters()).detach().cpu().double().numpy().tobytes()
            torch.manual_seed(zlib.crc32(begins))
            made = make(teacher)
        except Exception as error:
            raise OptionError(f"student = {student!r}: {client}: makes no student: {told(error)}") from error
        if not isinstance(made, nn.Module) or made is teacher:
            raise OptionError(f"student = {student!r}: {client}: gave {made!r:.60}: must give another torch.nn.Module")
        return Pair(teacher, made)


def _last_linear(model: nn.Module) -> nn.Linear | None:
    return next((one for one in reversed(list(model.modules())) if isinstance(one, nn.Linear)), None)


def _travels(name: str, share: Callable[[str], bool] | None) -> bool:
    return name.startswith("student.") and (share is None or share(name.removeprefix("student.")))
