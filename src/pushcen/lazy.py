"""Names that a package offers and imports only when they are asked for, so that importing it costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `where` says in which module each name is.

    >>> get, names = lazily("pushcen", {"Task": "pushcen.learning"})
    >>> get("Task").__module__.startswith("pushcen.learning"), "Task" in names()
    (True, True)
    >>> get("Tusk")
    Traceback (most recent call last):
    AttributeError: module 'pushcen' has no attribute 'Tusk'
    """

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, found)  # asked for once
        return found

    return get, lambda: sorted({*vars(sys.modules[package]), *where})
