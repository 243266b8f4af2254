"""What does not train (`requires_grad = False`): all clients have it alike, so it never travels and never changes.

So it is with the buffers of a module none of whose parameters trains, too. Only its fingerprints are compared, when
clients meet, and only the fingerprint of all of it is saved.

What is *fixed* (all of it but small buffers, which may count something, and statistics of norms) is never written to,
so that many clients of one process can hold it once.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from sys import intern
from typing import Any

import torch
import xxhash
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from pushcen.codec.schema import Share
from pushcen.errors import LearningError, ModelError, TaskError
from pushcen.memory import held_once

_LARGE_BUFFER = 1024
"""Numbers of the smallest buffer that is fixed."""
Held = dict[Any, torch.Tensor]
"""Fixed tensors of one process, each once."""


class Frozen:
    """Remembers which parameters of a model train.

    >>> model = nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 1))
    >>> frozen = Frozen(model, "client 3")
    >>> list(frozen.fingerprints()), len(frozen.trained)
    (['0.weight', '0.bias'], 2)
    >>> _ = model[0].requires_grad_(True)
    >>> frozen.check()
    Traceback (most recent call last):
    pushcen.errors.LearningError: client 3: 0.weight was frozen when the run began and trains now: ...
    """

    def __init__(self, model: nn.Module, client: str) -> None:
        self._client = client
        self._buffers = dict(_frozen_buffers(model))
        self._parameters = list(model.parameters())
        self._before = held_once(tuple((intern(name), p.requires_grad) for name, p in model.named_parameters()))
        self._fixed: dict[str, torch.Tensor] = {name: p for name, p, trains in self._noted() if not trains}
        self._fixed |= _large_buffers(model, self._buffers)
        self._versions = list(map(_version, self._fixed.values()))
        fixed = set(map(id, self._fixed.values()))
        tensors = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
        self.fixed = held_once(frozenset(name for name, tensor in tensors if id(tensor) in fixed))
        """The names of all that is fixed; of what is tied, all of them."""
        self.trained = [parameter for _, parameter, trains in self._noted() if trains]
        if not self.trained:
            what = "all its parameters are frozen (requires_grad = False)" if self._before else "it has no parameters"
            raise LearningError(f"{client}: nothing of the model trains: {what}; one at least must train")

    def _noted(self) -> Iterator[tuple[str, nn.Parameter, bool]]:
        """Yield each parameter, with its name and whether it trained at first."""
        for (name, trained), parameter in zip(self._before, self._parameters, strict=True):
            yield name, parameter, trained

    def leave_out(self, share: Share | None, model: nn.Module) -> Share:
        """Share what `share` says, but for what of the model is frozen, by any of its names."""
        frozen = {name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
        frozen |= self._buffers.keys()
        return lambda name: name not in frozen and (share is None or share(name))

    def check(self) -> None:
        """Refuse a model in which something else trains than at first, or something wrote into what is fixed."""
        for name, parameter, trained in self._noted():
            if parameter.requires_grad != trained:
                was, now = ("trained", "is frozen") if trained else ("was frozen", "trains")
                raise LearningError(
                    f"{self._client}: {name} {was} when the run began and {now} now: what trains must be decided "
                    "by the task function, for the whole run and for all clients alike"
                )
        for (name, tensor), version in zip(self._fixed.items(), self._versions, strict=True):
            if _version(tensor) != version:
                raise TaskError(
                    f"{self._client}: something wrote into the frozen {name}, which all clients hold in common: must "
                    "write into a copy of it, or it must train (requires_grad = True)"
                )

    def fingerprints(self) -> dict[str, str]:
        """Return shape, type and a hash of each frozen parameter, and of the buffers of what is frozen, by name."""
        return self._fingerprints

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        parameters = {name: parameter.detach() for name, parameter, trains in self._noted() if not trains}
        return {name: held_once(_fingerprint(tensor)) for name, tensor in (parameters | self._buffers).items()}

    @cached_property
    def base(self) -> str:
        """The fingerprint of all that is fixed, 32 digits; empty if nothing is."""
        forms = "\n".join(f"{name} {self._fingerprints[name]}" for name in self._fixed)
        return xxhash.xxh3_128_hexdigest(forms.encode()) if forms else ""

    def share(self, held: Held) -> None:
        """Use the tensors in `held` in place of equal ones, whose memory is freed; add to it what it lacks.

        >>> models, held = [nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 1)) for _ in "ab"], {}
        >>> _ = models[1].load_state_dict(models[0].state_dict())
        >>> for model in models:
        ...     Frozen(model, "a client").share(held)
        >>> [one.data_ptr() == other.data_ptr() for one, other in zip(*(model.parameters() for model in models))]
        [True, True, False, False]
        """
        for name, tensor in self._fixed.items():
            if type(tensor) not in (torch.Tensor, nn.Parameter):
                continue  # what its class has beside its numbers is not compared
            key = self._fingerprints[name], tensor.device, tensor.stride()
            tensor.data = held.setdefault(key, tensor.data)
        self._versions = list(map(_version, self._fixed.values()))

    def without_fixed(self, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return what of a model's state is to be saved: all but what is fixed, which whoever goes on has."""
        places = {tensor.data_ptr() for tensor in self._fixed.values()}
        return {
            name: tensor
            for name, tensor in state.items()
            if name not in self.fixed or tensor.data_ptr() not in places  # a model may save what it likes
        }

    def check_saved(self, saved: Mapping[str, torch.Tensor], base: str | None, model: nn.Module) -> None:
        """Refuse what was saved on another frozen part: by the fingerprint `base`, or by what is there of it itself."""
        must = "the task function must make the model on which it was trained"
        if base is not None and base != self.base:
            raise ModelError(
                f"{self._client}: what was saved stands on the frozen part {base}, and the model's is "
                f"{self.base or 'empty'}: {must}"
            )
        for name in (name for name in saved if name in self.fixed):
            was, now = _fingerprint(saved[name]), _fingerprint(model.state_dict()[name])
            if was != now:
                raise ModelError(f"{self._client}: the frozen {name} was saved as {was}, and here it is {now}: {must}")


def _frozen_buffers(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the saved buffers of modules that have parameters, none of which trains, and of the modules in these.

    BatchNorm's statistics are not among them: `training.batch_norm` says whether they travel.
    """
    frozen: set[nn.Module] = set()
    for module in model.modules():
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            frozen.update(module.modules())
    for prefix, module in model.named_modules():
        if module in frozen and not isinstance(module, _BatchNorm):
            for name, buffer in module.named_buffers(recurse=False):
                if name not in module._non_persistent_buffers_set:
                    yield intern(f"{prefix}.{name}".removeprefix(".")), buffer


def _large_buffers(model: nn.Module, buffers: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return those of `buffers` that no norm gathers, and that are too large to count anything."""
    norms = [module for module in model.modules() if isinstance(module, _NormBase)]
    gathered = {id(buffer) for norm in norms for buffer in norm.buffers(recurse=False)}
    return {
        name: buffer
        for name, buffer in buffers.items()
        if buffer.numel() >= _LARGE_BUFFER and id(buffer) not in gathered
    }


def check_same_frozen(mine: Mapping[str, str], theirs: Mapping[str, str], who: str) -> None:
    """Refuse `theirs` if it differs from `mine`, naming `who` and the first tensor.

    >>> check_same_frozen({"fc.weight": "[2, 1] float32 a"}, {"fc.weight": "[2, 1] float32 b"}, "client 7")
    Traceback (most recent call last):
    pushcen.errors.ModelError: client 7: the frozen fc.weight is [2, 1] float32 b, and for others it is ...
    """
    for name in {**mine, **theirs}:
        here, there = mine.get(name), theirs.get(name)
        if here and there and here != there:
            raise ModelError(
                f"{who}: the frozen {name} is {there}, and for others it is {here}: "
                "what is frozen must be the same for all, from one file, say"
            )
        if here != there:
            one, other = ("frozen", "not") if there else ("not frozen, or not there", "frozen")
            raise ModelError(f"{who}: {name} is {one}, and for others it is {other}: all must freeze the same")


def _version(tensor: torch.Tensor) -> int:
    """Return how often something wrote into a tensor; those made in inference mode do not count it."""
    return 0 if tensor.is_inference() else tensor._version


def _fingerprint(tensor: torch.Tensor) -> str:
    form = f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    raw = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return f"{form} {xxhash.xxh3_128_hexdigest(raw)}"
