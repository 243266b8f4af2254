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


def source_of(name: str, key: str) -> Path:
    """Return the file in which `module:thing` or `file.py:thing` is written, without importing that module.

    >>> source_of("json:loads", "graph").name
    '__init__.py'
    """
    where = name.rpartition(":")[0]
    if where.endswith(".py"):
        return Path(where)
    _look_here()
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin or not Path(found.origin).is_file():
        raise OptionError(f"{key} = {name!r}: there is no module {where} with a file of its own")
    return Path(found.origin)


def _by_name(name: str) -> ModuleType:
    _look_here()
    return importlib.import_module(name)


def _look_here() -> None:
    """Let modules in the current folder be found."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


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
