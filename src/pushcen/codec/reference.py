"""A model that both sides have, so that a payload need only hold the difference to it."""

import hashlib
from dataclasses import dataclass
from weakref import WeakValueDictionary

import torch
from torch import nn

from pushcen.codec.clustering import flatten
from pushcen.codec.schema import Schema


@dataclass(frozen=True, eq=False)
class Reference:
    """The shared tensors of a model as they were, in one row of float32, and a fingerprint that names them.

    The fingerprint begins the SHA-256 of the schema's fingerprint and the row's bytes (little-endian float32).
    """

    schema: Schema
    row: torch.Tensor
    fingerprint: bytes

    @classmethod
    def of(cls, model: nn.Module, schema: Schema | None = None) -> "Reference":
        """Take a copy of what `model` shares; equal ones are held once.

        >>> model = nn.Linear(2, 1)
        >>> before, again = Reference.of(model), Reference.of(model)
        >>> before.fingerprint == again.fingerprint != Reference.of(nn.Linear(2, 1)).fingerprint
        True
        """
        schema = schema or Schema.of(model)
        return cls.named(schema, torch.cat([flatten(tensor) for tensor in schema.tensors(model)]))

    @classmethod
    def named(cls, schema: Schema, row: torch.Tensor) -> "Reference":
        """Name a row of numbers, which nobody changes any more; of equal ones, return the first."""
        digest = hashlib.sha256(schema.fingerprint)
        digest.update(row.cpu().numpy().data)
        fingerprint = digest.digest()[:16]
        return _HELD.setdefault((fingerprint, row.device), cls(schema, row, fingerprint))


_HELD: WeakValueDictionary[tuple[bytes, torch.device], Reference] = WeakValueDictionary()
