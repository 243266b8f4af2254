"""A user's own thing by name: `module:thing`, from what is installed or the current folder, or `file.py:thing`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pushcen.errors import OptionError


def locate(name: str, key: str) -> Any:
    """Return `module:thing` or `file.py:thing`, imported; `key` is the option that has this name as its value.

    >>> locate("math:sqrt", "task")(9.0)
    3.0
    >>> locate("math", "task")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'math': must be module:name, or file.py:name
    >>> locate("math:nothing", "task")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'math:nothing': module math has no nothing
    >>> locate("no/such.py:task", "task")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'no/such.py:task': there is no file no/such.py
    """
    where, _, thing = name.rpartition(":")
    if not where or not thing:
        raise OptionError(f"{key} = {name!r}: must be module:name, or file.py:name")
    try:
        module = _from_file(Path(where), f"{key} = {name!r}") if where.endswith(".py") else _by_name(where)
    except ModuleNotFoundError as error:
        raise OptionError(f"{key} = {name!r}: {error}") from None
    if not hasattr(module, thing):
        raise OptionError(f"{key} = {name!r}: module {where} has no {thing}")
    return getattr(module, thing)


def _by_name(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(name)


def _from_file(path: Path, what: str) -> ModuleType:
    """Import a file as the module of its name, with the files beside it; once, however often it is asked for."""
    if not path.is_file():
        raise OptionError(f"{what}: there is no file {path}")
    path, name = path.resolve(), path.stem
    there = sys.modules.get(name)
    if there is not None:
        if Path(getattr(there, "__file__", None) or "").resolve() == path:
            return there
        raise OptionError(f"{what}: another module is called {name} already; call the file something else")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # last, so that nothing there stands in for a library
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
