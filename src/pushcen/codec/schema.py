"""Which tensors of a model travel, and how: decided from the module tree, never from parts of names."""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, zip_longest
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy

from pushcen.errors import ModelError

Spans = NDArray[np.int64]
Share = Callable[[str], bool]
"""A user's choice of what travels: is the tensor of this name shared?"""

_CLUSTERED = (_ConvNd, nn.Linear, nn.Bilinear, nn.Embedding, nn.EmbeddingBag)
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class Entry:
    """One tensor that travels."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    clustered: bool

    @cached_property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        kind = "clustered" if self.clustered else "as is"
        return f"{self.name} {list(self.shape)} {str(self.dtype).removeprefix('torch.')} {kind}"


@dataclass(frozen=True)
class Schema:
    """The tensors that travel, in the order of the module tree. Two models can talk if their schemas are equal."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, model: nn.Module, share: Share | None = None, *, batch_norm: bool = False) -> "Schema":
        """Decide what of `model` travels.

        Weights of convolutions, linear layers and embeddings, and other parameters with two or more dimensions, are
        clustered. Biases, the weights of normalisations and floating-point buffers travel as they are. BatchNorm's
        parameters and statistics (unless `batch_norm`), integers and what `share` leaves out stay home. Tied weights
        travel once.

        >>> print(Schema.of(nn.Sequential(nn.Conv2d(3, 8, 5), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 2))))
        0.weight [8, 3, 5, 5] float32 clustered
        0.bias [8] float32 as is
        3.weight [2, 8] float32 clustered
        3.bias [2] float32 as is
        >>> print(Schema.of(nn.Linear(4, 2), share=lambda name: name != "bias"))
        weight [2, 4] float32 clustered
        """
        entries = []
        seen: set[int] = set()
        for name, tensor, clustered in _travellers(model, batch_norm):
            if id(tensor) in seen or (share is not None and not share(name)):
                continue
            seen.add(id(tensor))
            if is_lazy(tensor):
                raise ModelError(f"{name} has no shape yet: run the model once on a batch before sharing it")
            if tensor.is_complex():
                raise ModelError(f"{name} is {tensor.dtype}: complex numbers cannot travel; leave it out with share=")
            entries.append(Entry(name, tuple(tensor.shape), tensor.dtype, clustered))
        if not entries:
            raise ModelError("nothing of this model is shared; share= must keep at least one floating-point tensor")
        return cls(tuple(entries))

    @cached_property
    def fingerprint(self) -> bytes:
        """Sixteen bytes that differ when a name, a shape, a dtype or what is clustered differs.

        They begin the SHA-256 of `str(schema)`, lines joined by newlines, in UTF-8.
        """
        return hashlib.sha256(str(self).encode()).digest()[:16]

    @cached_property
    def size(self) -> int:
        """How many numbers travel."""
        return sum(entry.size for entry in self.entries)

    @cached_property
    def clustered(self) -> tuple[Entry, ...]:
        """The entries that are clustered and not empty: those that have a centroid table."""
        return tuple(entry for entry in self.entries if entry.clustered and entry.size)

    @cached_property
    def plain_size(self) -> int:
        """How many numbers travel as they are."""
        return sum(entry.size for entry in self.entries if not entry.clustered)

    @cached_property
    def slices(self) -> tuple[tuple[Entry, slice], ...]:
        """Each entry with its place when all numbers that travel stand in one row."""
        ends = list(accumulate((entry.size for entry in self.entries), initial=0))
        return tuple(zip(self.entries, map(slice, ends, ends[1:]), strict=True))

    @cached_property
    def spans(self) -> tuple[Spans, Spans]:
        """Where the clustered tensors begin and end in that row, and where the others do."""
        places = [(entry, [place.start, place.stop]) for entry, place in self.slices if entry.size]
        clustered, plain = ([span for entry, span in places if entry.clustered == kind] for kind in (True, False))
        return np.array(clustered, np.int64).reshape(-1, 2), np.array(plain, np.int64).reshape(-1, 2)

    def packed(self, bits: int) -> "Packed":
        """Return where the clustered entries' indices are when they are packed at so many bits, layer after layer."""
        found = self._packed.get(bits)
        if found is None:
            sizes = np.array([entry.size for entry in self.clustered], np.int64)
            lengths = -(-sizes * bits // 8)
            used = (8 - (8 * lengths - bits * sizes)).astype(np.uint8)
            found = self._packed[bits] = Packed(tuple(lengths.tolist()), int(lengths.sum()), lengths.cumsum() - 1, used)
        return found

    @cached_property
    def _packed(self) -> "dict[int, Packed]":
        return {}

    def tensors(self, model: nn.Module) -> list[torch.Tensor]:
        """Return the model's tensors in the order of the entries; refuse a model that does not fit.

        >>> Schema.of(nn.Linear(4, 2)).tensors(nn.Linear(5, 2))
        Traceback (most recent call last):
        pushcen.errors.ModelError: weight is [2, 5] float32 here, and [2, 4] float32 in the schema
        """
        tensors = []
        for entry, (modules, name) in zip(self.entries, self._paths, strict=True):
            try:
                tensor = _found(model, modules, name)
                form = tensor.shape, tensor.dtype
            except AttributeError:
                raise ModelError(f"the model has no {entry.name}, which the schema has as {_form(entry)}") from None
            if form != (entry.shape, entry.dtype):
                raise ModelError(f"{entry.name} is {_form(tensor)} here, and {_form(entry)} in the schema")
            tensors.append(tensor)
        return tensors

    @cached_property
    def _paths(self) -> tuple[tuple[list[str], str], ...]:
        """The modules that lead to each tensor, and its name in the last."""
        paths = [entry.name.split(".") for entry in self.entries]
        return tuple((path[:-1], path[-1]) for path in paths)

    def check_same(self, other: "Schema") -> None:
        """Refuse `other` if it differs, naming the first difference.

        >>> Schema.of(nn.Linear(4, 2)).check_same(Schema.of(nn.Linear(4, 3)))
        Traceback (most recent call last):
        pushcen.errors.ModelError: the schemas differ: weight [2, 4] float32 clustered / weight [3, 4] float32 clustered
        """
        for mine, theirs in zip_longest(self.entries, other.entries, fillvalue="nothing more"):
            if mine != theirs:
                raise ModelError(f"the schemas differ: {mine} / {theirs}")

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))


class Packed(NamedTuple):
    """Where packed indices are: the bytes of each layer, of all, each layer's last byte, and the bits in use there."""

    lengths: tuple[int, ...]
    size: int
    last: NDArray[np.int64]
    used: NDArray[np.uint8]


def _travellers(model: nn.Module, batch_norm: bool) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield every tensor that may travel, with its name and whether it is clustered."""
    for prefix, module in model.named_modules():
        if isinstance(module, _BatchNorm) and not batch_norm:
            continue
        path = f"{prefix}." if prefix else ""
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if parameter.is_floating_point() or parameter.is_complex():
                yield path + name, parameter, _is_clustered(module, name, parameter)
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            if buffer.is_floating_point() and name not in module._non_persistent_buffers_set:
                yield path + name, buffer, False


def _found(model: nn.Module, modules: list[str], name: str) -> torch.Tensor:
    """Return the tensor at the end of a path: nearly always a parameter, which is in its module's own table."""
    module = model
    try:
        for part in modules:
            module = module._modules[part]  # type: ignore[assignment]
        parameter = module._parameters[name]
    except (KeyError, AttributeError):
        parameter = None
    if parameter is not None:
        return parameter
    tensor: torch.Tensor = attrgetter(".".join((*modules, name)))(model)
    return tensor


def _is_clustered(module: nn.Module, name: str, parameter: torch.Tensor) -> bool:
    if isinstance(module, _CLUSTERED) and name == "weight":
        return True
    if isinstance(module, _NORMS) or is_lazy(parameter):
        return False
    return sum(size > 1 for size in parameter.shape) >= 2


def _form(tensor: torch.Tensor | Entry) -> str:
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
