"""How many floating-point operations training takes, by torch's own formulas."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_known: dict[Any, dict[Any, float]] = {}  # by the model's structure, then by the batch: all clients share it


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up what torch's FlopCounterMode does, which imports torch's compiler: that takes longer than many a run."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.OpOverload):
            if func._overloadpacket not in flop_registry and func is not torch.ops.prim.device.default:
                with self:  # it may consist of others that are known
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **kwargs)
            if (formula := flop_registry.get(func._overloadpacket)) is not None:
                self.total += formula(*args, **kwargs, out_val=out)
            return out
        return func(*args, **kwargs)


class StepCost:
    """Counts the first step of each kind of model and shape of batch, while it runs; later ones cost the same.

    >>> model = torch.nn.Linear(10, 2)
    >>> step = lambda: model(torch.zeros(4, 10)).sum().backward()
    >>> cost = StepCost(model)
    >>> _ = cost.run(4, step), cost.run(4, step)
    >>> cost.total                                       # 2 x 4 x 10 x 2 each, forward and for the weights
    640.0
    """

    def __init__(self, model: nn.Module, fit: Any = None) -> None:
        self.total = 0.0
        own = getattr(getattr(fit, "func", fit), "__code__", type(fit))  # a partial's, a method's, a function's own
        forms = ((p.shape, p.requires_grad) for p in model.parameters())
        self._known = _known.setdefault((repr(model), own, *forms), {})

    def run(self, shape: Any, step: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Run a step on a batch of this shape, and add its cost."""
        known = self._known.get(shape)
        if known is None:
            with _Counter() as counter:
                result = step()
            known = self._known[shape] = counter.total
        else:
            result = step()
        self.total += known
        return result

    @contextmanager
    def counting(self, shape: Any) -> Iterator[None]:
        """Add the cost of what runs in here, a user's own step on a batch of this shape."""
        known = self._known.get(shape)
        if known is None:
            counter = _Counter()
            try:
                with counter:
                    yield
                self._known[shape] = counter.total
            finally:
                self.total += counter.total
        else:
            self.total += known
            yield


def shape_of(inputs: Any) -> Any:
    """Return the shapes of a batch, however it is nested.

    >>> shape_of({"ids": torch.zeros(4, 2), "more": [torch.zeros(3)]})
    (torch.Size([4, 2]), (torch.Size([3]),))
    """
    if isinstance(inputs, torch.Tensor):
        return inputs.shape
    values = inputs.values() if isinstance(inputs, dict) else inputs
    return tuple(shape_of(value) for value in values if isinstance(value, torch.Tensor | dict | tuple | list))
