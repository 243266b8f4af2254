"""What does not train (`requires_grad = False`): all clients have it alike, so it never travels and never changes.

So it is with the buffers of a module none of whose parameters trains, too.

Only its fingerprints are compared, when clients meet.
"""

from collections.abc import Iterator, Mapping

import torch
import xxhash
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pushcen.codec.schema import Share
from pushcen.errors import LearningError, ModelError


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
        self._before = [(name, p, p.requires_grad) for name, p in model.named_parameters()]
        self._names = {name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
        self._names |= self._buffers.keys()
        self.trained = [parameter for _, parameter, trains in self._before if trains]
        if not self.trained:
            what = "all its parameters are frozen (requires_grad = False)" if self._before else "it has no parameters"
            raise LearningError(f"{client}: nothing of the model trains: {what}; one at least must train")

    def leave_out(self, share: Share | None) -> Share:
        """Share what `share` says, but for what is frozen."""
        return lambda name: name not in self._names and (share is None or share(name))

    def check(self) -> None:
        """Refuse a model in which something else trains than at first."""
        for name, parameter, trained in self._before:
            if parameter.requires_grad != trained:
                was, now = ("trained", "is frozen") if trained else ("was frozen", "trains")
                raise LearningError(
                    f"{self._client}: {name} {was} when the run began and {now} now: what trains must be decided "
                    "by the task function, for the whole run and for all clients alike"
                )

    def fingerprints(self) -> dict[str, str]:
        """Return shape, type and a hash of each frozen parameter, and of the buffers of what is frozen, by name."""
        parameters = {name: parameter.detach() for name, parameter, trains in self._before if not trains}
        return {name: _fingerprint(tensor) for name, tensor in (parameters | self._buffers).items()}


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
                    yield f"{prefix}.{name}".removeprefix("."), buffer


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


def _fingerprint(tensor: torch.Tensor) -> str:
    form = f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    raw = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return f"{form} {xxhash.xxh3_128_hexdigest(raw)}"
