"""What the user brings: a model, data, and what is good."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from pushcen.codec.schema import Share
from pushcen.errors import OptionError, PushcenError, TaskError
from pushcen.learning.mistakes import form_of, told
from pushcen.learning.noise import GENERATOR
from pushcen.learning.samples import Samples
from pushcen.locate import locate


def correct(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return for each sample whether the highest score is the target's: their mean is top-1 accuracy.

    >>> correct(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    tensor([1., 0.])
    >>> correct(torch.tensor([0.1, 0.9]), torch.tensor([1, 1]))
    Traceback (most recent call last):
    ValueError: the outputs are [2] float32: top-1 accuracy needs a score for each class, ...
    """
    if outputs.dim() < 2 or outputs.shape[-1] < 2:
        raise ValueError(
            f"the outputs are {form_of(outputs)}: top-1 accuracy needs a score for each class, [samples, classes]; "
            "for one output a sample, give the Task a metric of its own"
        )
    return (outputs.argmax(-1) == targets).float()


def total_of(values: Any, samples: int, client: str) -> float:
    """Add up what a metric gave for so many samples: one number each, or it is an error.

    >>> total_of(torch.tensor([True, False, True]), 3, "client 7")
    2.0
    >>> total_of(torch.zeros(3, 9), 3, "client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7: the metric gave a tensor [3, 9] float32 for 3 samples: must be one ...
    """
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values)
    given = isinstance(values, torch.Tensor)
    if not given or values.dim() < 1 or values.shape[0] != samples or values.numel() != samples or values.is_complex():
        what = f"a tensor {form_of(values)}" if given else f"{values!r:.40}, {type(values)}"
        raise TaskError(
            f"{client}: the metric gave {what} for {samples} samples: must be one number a sample, a tensor [{samples}]"
            "; no mean over the batch, and where a sample has several outputs, the mean over these"
        )
    return float(values.double().sum())


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
    `loss(outputs, targets)` is a mean over the batch; `metric` gives one number a sample, and higher is better.
    `share` says by name which tensors travel; what is frozen (`requires_grad = False`) never does. `about` has facts,
    by name, in which all peers must agree: how inputs are encoded, say.
    """

    model: nn.Module
    train: Samples
    test: Samples | None = None
    loss: Callable[[Any, Any], torch.Tensor] = nn.functional.cross_entropy
    metric: Callable[[Any, Any], torch.Tensor] = correct
    share: Share | None = None
    about: Mapping[str, str] = field(default_factory=dict)

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
        for name in ("loss", "metric", "share"):
            given = getattr(self, name)
            if not callable(given) and not (name == "share" and given is None):
                raise TaskError(f"{client}: the task's {name} is {given!r:.80}: must be a function")
        if not all(isinstance(word, str) for fact in dict(self.about).items() for word in fact):
            raise TaskError(f"{client}: the task's about is {self.about!r:.80}: must be texts by name")


TaskFunction = Callable[[int, int], Task]
"""Makes the task of client number `client` of `clients`."""


def load_task(name: str) -> TaskFunction:
    """Find a task function by `module:function`; modules in the current folder are found too.

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
