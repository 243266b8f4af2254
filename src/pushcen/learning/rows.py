"""What a model shares, as one row of numbers, and back."""

import torch
from torch import nn

from pushcen.codec import Schema
from pushcen.codec.clustering import flatten


def row_of(schema: Schema, model: nn.Module) -> torch.Tensor:
    """Copy what a model shares into one row of float32.

    >>> model = nn.Linear(3, 2)
    >>> len(row_of(Schema.of(model), model))
    8
    """
    return torch.cat([flatten(tensor) for tensor in schema.tensors(model)])


def write_row(schema: Schema, model: nn.Module, row: torch.Tensor) -> None:
    """Set what a model shares to the numbers of a row, on whatever device and of whatever type they are.

    >>> model = nn.Linear(3, 2)
    >>> write_row(Schema.of(model), model, torch.arange(8.0))
    >>> model.bias.tolist()
    [6.0, 7.0]
    """
    with torch.no_grad():
        for (entry, place), tensor in zip(schema.slices, schema.tensors(model), strict=True):
            tensor.copy_(row[place].view(entry.shape))


def trained_places(schema: Schema, model: nn.Module) -> torch.Tensor:
    """Return a row that is true where a parameter is, and false where a statistic of BatchNorm is.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    >>> trained_places(Schema.of(model, batch_norm=True), model).tolist()
    [True, True, True, True, False, False]
    """
    tensors = schema.tensors(model)
    kinds = [torch.full((tensor.numel(),), isinstance(tensor, nn.Parameter)) for tensor in tensors]
    return torch.cat(kinds)
