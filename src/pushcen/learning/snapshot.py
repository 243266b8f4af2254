"""A learner's tensors as they were before an event, to go back to if it fails."""

import copy
from collections import defaultdict
from collections.abc import Collection, Iterable

import torch
from torch import nn

from pushcen.learning.update import Update
from pushcen.learning.work import State


class Snapshot:
    """Copies of all that a compute event changes, but for random streams: a second try is not the first again.

    `fixed` names the buffers that nothing changes.

    >>> model, update = nn.Linear(2, 1), Update()
    >>> optimiser = torch.optim.SGD(model.parameters(), 0.1)
    >>> before = Snapshot(model, model.parameters(), optimiser, update)
    >>> _ = nn.init.constant_(model.weight, float("nan"))
    >>> before.bring_back() is optimiser, bool(model.weight.isfinite().all())
    (True, True)
    """

    def __init__(
        self,
        model: nn.Module,
        trained: Iterable[nn.Parameter],
        optimiser: torch.optim.Optimizer,
        update: Update,
        fixed: Collection[str] = (),
    ) -> None:
        self._optimiser, self._update = optimiser, update
        self._tensors: list[tuple[torch.Tensor, torch.Tensor]] = [(one, one.detach().clone()) for one in trained]
        self._places = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
        self._tensors += [(buffer, buffer.clone()) for name, buffer in model.named_buffers() if name not in fixed]
        self._extra = [
            (module, copy.deepcopy(module.get_extra_state()))
            for module in model.modules()
            if type(module).get_extra_state is not nn.Module.get_extra_state
        ]
        self._memory = {
            parameter: {
                name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in memory.items()
            }
            for parameter, memory in optimiser.state.items()
        }
        tensors, plain = update.save(whole=False)
        self._own = State({name: tensor.clone() for name, tensor in tensors.items()}, plain)

    def bring_back(self) -> torch.optim.Optimizer:
        """End the event and set everything back; return the optimiser of that time."""
        self._update.end()
        with torch.no_grad():
            for tensor, before in self._tensors:
                tensor.copy_(before)
        for module, buffers in self._places:  # a forward pass may have put others in their place
            module._buffers.update(buffers)
        for module, extra in self._extra:
            module.set_extra_state(extra)
        self._optimiser.state = defaultdict(dict, self._memory)
        self._optimiser.zero_grad()
        folded, own = self._update.save(), self._update.save(whole=False)  # meanwhile, for the next event
        tensors = {name: tensor for name, tensor in folded.tensors.items() if name not in own.tensors}
        plain = {name: value for name, value in folded.plain.items() if name not in own.plain}
        self._update.restore(State(self._own.tensors | tensors, self._own.plain | plain))
        return self._optimiser
