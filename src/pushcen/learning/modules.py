"""What has to be known of a user's model beside its tensors."""

import json
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from pushcen.codec import Schema
from pushcen.codec.schema import Share
from pushcen.errors import ModelError, OptionError, TaskError
from pushcen.learning.mistakes import blaming, told
from pushcen.memory import held_once


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


def tables_of(model: nn.Module) -> list[str]:
    """Return the names of tensors whose rows are looked up: of embeddings, by all names that they have.

    >>> tables_of(nn.Sequential(nn.Embedding(9, 2), nn.Linear(2, 9)))
    ['0.weight']
    """
    rows = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding | nn.EmbeddingBag)}
    return [name for name, one in model.named_parameters(remove_duplicate=False) if id(one) in rows]


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


def schema_of(model: nn.Module, share: Share, *, batch_norm: bool, client: str) -> Schema:
    """Return the schema of what a client shares; what is wrong with it is told with the client's name.

    >>> schema_of(nn.Linear(2, 1), lambda name: False, batch_norm=False, client="client 7")
    Traceback (most recent call last):
    pushcen.errors.ModelError: client 7: nothing of this model is shared; ...
    """
    try:
        with blaming(f"{client}, share=", ()):
            return held_once(Schema.of(model, share, batch_norm=batch_norm))
    except ModelError as error:
        raise ModelError(f"{client}: {error}") from error


def changing_tensors(model: nn.Module, schema: Schema) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield what an event changes, by name: what trains or travels, and the statistics that norms gather in training.

    >>> model = nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.BatchNorm1d(2, affine=False), nn.Linear(2, 1))
    >>> [name for name, _ in changing_tensors(model, Schema.of(model[2]))]
    ['2.weight', '2.bias', '1.running_mean', '1.running_var']
    """
    travels = {entry.name for entry in schema.entries}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad or name in travels:
            yield name, parameter
    norms = {name for name, module in model.named_modules() if isinstance(module, _NormBase) and module.training}
    for name, buffer in model.named_buffers():
        if name in travels or (name.rpartition(".")[0] in norms and buffer.is_floating_point()):
            yield name, buffer
