"""A user's own thing by name: `module:thing`, from what is installed or from a file in the current folder."""

import importlib
import sys
from pathlib import Path
from typing import Any

from pushcen.errors import OptionError


def locate(name: str, key: str) -> Any:
    """Return `module:thing`, imported; `key` is the option that has this name as its value.

    >>> locate("math:sqrt", "task")(9.0)
    3.0
    >>> locate("math", "task")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'math': must be module:name
    >>> locate("math:nothing", "task")
    Traceback (most recent call last):
    pushcen.errors.OptionError: task = 'math:nothing': module math has no nothing
    """
    module_name, _, thing = name.partition(":")
    if not module_name or not thing:
        raise OptionError(f"{key} = {name!r}: must be module:name")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise OptionError(f"{key} = {name!r}: {error}") from None
    if not hasattr(module, thing):
        raise OptionError(f"{key} = {name!r}: module {module_name} has no {thing}")
    return getattr(module, thing)
