"""Models of clients that rest share what is empty in their modules: most of a module's own memory is room for hooks."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Never

from torch import nn


class _NoHooks(OrderedDict[int, Any]):
    """The empty hooks of all modules that rest; there is one, so a copy of a model that rests does so, too."""

    def __setitem__(self, key: int, hook: Any) -> Never:
        raise RuntimeError(
            "this model's client rests, and its modules take no hooks: register them in the task function, or while "
            "it trains, in the task's fit or the model's forward"
        )

    def __reduce__(self) -> str:
        return "_NO_HOOKS"


_NO_HOOKS = _NoHooks()
_NO_NAMES: frozenset[str] = frozenset()
_HOOKS = tuple(name for name, value in vars(nn.Module()).items() if type(value) is OrderedDict)
_NAMES = tuple(name for name, value in vars(nn.Module()).items() if type(value) is set)


def rest(model: nn.Module) -> None:
    """Let all modules of a model share their empty places for hooks, until it is `awake`.

    >>> model = nn.Linear(2, 1)
    >>> rest(model)
    >>> model._forward_hooks is model._backward_hooks
    True
    """
    for module in model.modules():
        own = vars(module)
        for name in _HOOKS:
            if type(own.get(name)) is OrderedDict and not own[name]:
                own[name] = _NO_HOOKS
        for name in _NAMES:
            if type(own.get(name)) is set and not own[name]:
                own[name] = _NO_NAMES


@contextmanager
def awake(model: nn.Module) -> Iterator[None]:
    """Give each module of a model that rests its own places again, for as long as somebody works with it.

    >>> model = nn.Linear(2, 1)
    >>> rest(model)
    >>> with awake(model):
    ...     _ = model.register_forward_hook(print)
    >>> len(model._forward_hooks), len(model._backward_hooks)
    (1, 0)
    """
    for module in model.modules():
        own = vars(module)
        for name in _HOOKS:
            if own.get(name) is _NO_HOOKS:
                own[name] = OrderedDict()
        for name in _NAMES:
            if own.get(name) is _NO_NAMES:
                own[name] = set()
    try:
        yield
    finally:
        rest(model)
