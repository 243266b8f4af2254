"""Randomness of the user's own code (dropout, noise, augmentation), from the client's own stream.

PyTorch draws it from one generator that all threads share: on several of them no run would be like another.
"""

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode, _pop_mode_temporarily

GENERATOR = threading.RLock()
"""Whoever sets the state of PyTorch's generator holds this."""

_NAMES = """
bernoulli binomial cauchy exponential geometric log_normal multinomial normal poisson random trunc_normal uniform
rand rand_like randint randint_like randn randn_like randperm
kaiming_normal kaiming_uniform xavier_normal xavier_uniform
dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout rrelu gumbel_softmax
scaled_dot_product_attention multi_head_attention_forward lstm gru rnn_tanh rnn_relu fractional_max_pool2d
"""
_DRAWING = frozenset(_NAMES.split())  # and those in place, with an underscore
_NOTHING = nullcontext()


@functools.lru_cache(1 << 10)  # looked up at every call of a client's first event
def _may_draw(function: Any) -> bool:
    return getattr(function, "__name__", "").rstrip("_") in _DRAWING


class _Own(TorchFunctionMode):
    """Makes functions that draw find the client's stream in PyTorch's generator; notes whether one has drawn."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator, self.used = generator, False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _may_draw(func) or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        with GENERATOR:
            theirs, mine = torch.get_rng_state(), self._generator.get_state()
            torch.set_rng_state(mine)
            try:
                return func(*args, **kwargs)
            finally:
                drawn = torch.get_rng_state()
                torch.set_rng_state(theirs)
                if not torch.equal(drawn, mine):
                    self._generator.set_state(drawn)
                    self.used = True


def unseen() -> AbstractContextManager[Any]:
    """Return a context for what cannot draw, as the step of an optimiser: its calls, most of all, are not looked at.

    >>> with Noise(nn.Linear(2, 1), seed=1).own(), unseen():
    ...     _get_current_function_mode() is None
    True
    """
    mode = _get_current_function_mode()  # type: ignore[no-untyped-call]
    return _pop_mode_temporarily() if isinstance(mode, _Own) else _NOTHING


class Noise:
    """All randomness of a client's model and data on the CPU. What has drawn nothing in its first event costs nothing.

    >>> noise = Noise(nn.Linear(2, 1), seed=1)
    >>> with noise.own():
    ...     first = torch.rand(2)
    >>> torch.equal(first, torch.rand(2, generator=torch.Generator().manual_seed(1)))
    True
    """

    def __init__(self, model: nn.Module, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self._layers = own_dropout(model, self.generator)
        self._draws: bool | None = None  # beside its layers; not known yet

    @contextmanager
    def own(self) -> Iterator[None]:
        """Make all that draws in here do it from the client's own stream."""
        if self._draws is False:
            yield
            return
        mode = _Own(self.generator)
        try:
            with mode:
                yield
        except BaseException:
            self._draws = mode.used or self._draws
            raise
        self._draws = mode.used or bool(self._draws)

    def save(self) -> dict[str, torch.Tensor]:
        """Return the state that `restore` takes: of what draws."""
        return {"noise": self.generator.get_state()} if self._layers or self._draws else {}

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over what `save` returned."""
        self._draws = True if "noise" in tensors and not self._layers else None
        if "noise" in tensors:
            self.generator.set_state(tensors["noise"])


_WHOLE_CHANNELS: dict[Callable[..., torch.Tensor], bool] = {
    nn.Dropout.forward: False,
    nn.Dropout1d.forward: True,
    nn.Dropout2d.forward: True,
    nn.Dropout3d.forward: True,
}


def own_dropout(model: nn.Module, generator: torch.Generator) -> bool:
    """Make the model's dropout layers draw from `generator`; return whether there are any.

    A layer that has a `forward` of its own, in its class or by itself, keeps it.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    >>> own_dropout(model, torch.Generator().manual_seed(1))
    True
    >>> model[1](torch.ones(6))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    found = False
    for module in model.modules():
        channels = _WHOLE_CHANNELS.get(getattr(type(module), "forward", None))  # type: ignore[arg-type]
        ours = isinstance(vars(module).get("forward"), _OwnDraw | None)
        if channels is not None and ours and float(module.p) > 0:  # type: ignore[arg-type]
            module.forward = _OwnDraw(module, generator, channels)
            found = True
    return found


class _OwnDraw:
    """A dropout layer's `forward`: zeroes single values, or with the layers for images whole channels."""

    def __init__(self, module: nn.Module, generator: torch.Generator, channels: bool) -> None:
        self.module, self.generator, self.channels = module, generator, channels

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values that are kept, scaled; in evaluation all of them."""
        if not self.module.training:
            return x
        keep = 1.0 - float(self.module.p)  # type: ignore[arg-type]
        shape = (*x.shape[:2], *[1] * (x.dim() - 2)) if self.channels else x.shape
        kept = torch.empty(shape).bernoulli_(keep, generator=self.generator)
        return x * kept.to(x.device, x.dtype).div_(keep or 1.0)

    def __deepcopy__(self, memo: dict[int, Any]) -> "_OwnDraw":
        """Belong to the copy of the layer, which may be in evaluation while this one trains."""
        return _OwnDraw(copy.deepcopy(self.module, memo), self.generator, self.channels)
