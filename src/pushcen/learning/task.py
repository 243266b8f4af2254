"""What the user brings: a model, data, and what is good."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from pushcen.codec.schema import Share
from pushcen.errors import OptionError, PushcenError, TaskError
from pushcen.learning.metrics import mean_squared_error, metrics_of
from pushcen.learning.mistakes import form_of, told
from pushcen.learning.noise import GENERATOR
from pushcen.learning.samples import Samples
from pushcen.locate import locate


def one_loss(loss: Any, client: str) -> torch.Tensor:
    """Return a loss if it is one number.

    >>> one_loss(torch.zeros(3), "client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7: the loss gave a tensor [3] float32: must be one number, the mean over ...
    """
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        return loss
    given = f"a tensor {form_of(loss)}" if isinstance(loss, torch.Tensor) else f"{loss!r:.40}, {type(loss)}"
    raise TaskError(f"{client}: the loss gave {given}: must be one number, the mean over the batch, as a tensor")


@dataclass
class Task:
    """What one client trains: its own model and its own data.

    `model(inputs)` is called with a batch (with `*inputs` if they are a tuple or list, `**inputs` if a dict).
    `loss(outputs, targets)` is a mean over the batch. `metric` is a name ("f1"), `module:Class`, a function that gives
    one number a sample, or a list of these; it is accuracy, or RMSE where targets are numbers, unless it is given.
    `share` says by name which tensors travel; what is frozen (`requires_grad = False`) never does.
    `collate` makes a batch of a list of samples, as in PyTorch: `(inputs, targets)`, or a dict with `labels`.
    `fit(learner, batches)` trains for an event in place of the loop, and returns the mean loss. `about` has facts, by
    name, in which all peers must agree: how inputs are encoded, say.

    A model that returns `loss` and `logits`, as those of transformers do, is trained by its own loss unless there is a
    `loss` here; loss and metric get the logits.
    """

    model: nn.Module
    train: Samples
    test: Samples | None = None
    loss: Callable[[Any, Any], torch.Tensor] = nn.functional.cross_entropy
    metric: Any = None
    share: Share | None = None
    collate: Callable[[list[Any]], Any] | None = None
    fit: Callable[[Any, Any], Any] | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def brings_loss(self) -> bool:
        """Whether the loss is the user's own, and counts even where the model returns one."""
        return self.loss not in (nn.functional.cross_entropy, mean_squared_error)

    def check(self, client: str) -> None:
        """Refuse what is no model or no function; `client` names whose task it is.

        >>> Task(nn.Linear, train=[]).check("client 7")
        Traceback (most recent call last):
        pushcen.errors.TaskError: client 7: the task's model is <class 'torch.nn.modules.linear.Linear'>: must be ...
        """
        if not isinstance(self.model, nn.Module):
            raise TaskError(
                f"{client}: the task's model is {self.model!r:.80}: must be a torch.nn.Module, made already"
            )
        empty = next((name for name, one in self.model.named_parameters() if one.is_meta), None)
        if empty is not None:
            raise TaskError(
                f"{client}: {empty} of the model is on the meta device: must have values, by load_weights, say"
            )
        if self.metric is not None:
            metrics_of(self.metric, self.loss, client)
        for name in ("loss", "share", "collate", "fit"):
            given = getattr(self, name)
            if not callable(given) and not (name != "loss" and given is None):
                raise TaskError(f"{client}: the task's {name} is {given!r:.80}: must be a function")
        if not all(isinstance(word, str) for fact in dict(self.about).items() for word in fact):
            raise TaskError(f"{client}: the task's about is {self.about!r:.80}: must be texts by name")


TaskFunction = Callable[[int, int], Task]
"""Makes the task of client number `client` of `clients`."""


def load_task(name: str) -> TaskFunction:
    """Find a task function by `module:function`, or `file.py:function`; modules in the current folder are found too.

    >>> load_task("math:pi")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'math:pi': 3.141592653589793 is no function
    """
    function = locate(name, "task")
    if not callable(function):
        raise OptionError(f"task = {name!r}: {function!r:.80} is no function")
    return function  # type: ignore[no-any-return]


def build_task(function: TaskFunction, client: int, clients: int, seed: int = 0) -> Task:
    """Make a client's task; what PyTorch draws meanwhile, initial weights above all, is the same for every client.

    >>> make = lambda client, clients: Task(nn.Linear(2, 1), (torch.zeros(1, 2), torch.zeros(1, 1)))
    >>> one, two = (build_task(make, client, 2, seed=5).model.weight for client in range(2))
    >>> torch.equal(one, two)
    True
    """
    with GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            task = function(client, clients)
        except PushcenError:
            raise
        except Exception as error:
            raise TaskError(f"the task function failed for client {client}: {told(error)}") from error
    if not isinstance(task, Task):
        raise TaskError(f"the task function gave {task!r:.80} for client {client}: must be a pushcen.learning.Task")
    return task
