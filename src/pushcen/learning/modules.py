"""What has to be known of a user's model beside its tensors."""

import json
from typing import Any

import torch
from torch import nn

from pushcen.errors import OptionError, TaskError
from pushcen.learning.mistakes import told


def device_named(name: str) -> torch.device:
    """Return the device; refuse one that this machine does not have.

    >>> device_named("cuda:99")
    Traceback (most recent call last):
    pushcen.errors.OptionError: training.device = 'cuda:99': is not there (...); cpu would do
    """
    device = torch.device(name)
    try:
        torch.zeros(1, device=device)
    except Exception as error:  # each kind of device has its own
        raise OptionError(f"training.device = {name!r}: is not there ({told(error)}); cpu would do") from error
    return device


def number_type(model: nn.Module) -> torch.dtype:
    """Return the type of the model's numbers: the widest, if there are several.

    >>> number_type(nn.Linear(2, 1))
    torch.float32
    """
    found = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    return max(found, key=lambda number: number.itemsize, default=torch.float32)


def extra_state(model: nn.Module, client: str) -> dict[str, Any]:
    """Return what modules save beside tensors (`get_extra_state`), by name; refuse what is no plain data.

    >>> extra_state(nn.Linear(2, 1), "client 7")
    {}
    """
    extra = {name: value for name, value in model.state_dict().items() if not isinstance(value, torch.Tensor)}
    for name, value in extra.items():
        try:
            plain = json.loads(json.dumps(value)) == value
        except (TypeError, ValueError):
            plain = False
        if not plain:
            raise TaskError(
                f"{client}: {name} is {value!r:.60}: what get_extra_state gives must be a tensor, or numbers, texts, "
                "lists and dicts of them by text"
            )
    return extra
