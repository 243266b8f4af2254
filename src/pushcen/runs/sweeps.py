"""Several runs in one folder: methods in the same world, or the points of a sweep."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pushcen.checks import check_count
from pushcen.config import Config, Text
from pushcen.errors import ConfigError, OptionError
from pushcen.methods import method_named

Load = Callable[[dict[str, Any]], Config]
"""Builds a config with some settings on top."""


def plan_comparison(load: Load, methods: Sequence[str], given: Mapping[str, Any]) -> dict[str, Config]:
    """Return a config for each method, the same world for all.

    An option of `given` that begins with `method.` goes to the methods that have it; one that none has is an error.
    """
    if not methods:
        raise OptionError("methods: at least one is needed")
    if twice := [name for at, name in enumerate(methods) if name in methods[:at]]:
        raise OptionError(f"methods = {twice[0]!r}: is named twice")
    options = {name: {field.name for field in fields(method_named(name))} for name in methods}
    special = {key.removeprefix("method."): value for key, value in given.items() if key.startswith("method.")}
    for key in special:
        if key != "name" and not any(key in has for has in options.values()):
            known = sorted(set().union(*options.values()))
            raise ConfigError(f"method.{key} = {str(special[key])!r}: none of the methods has it; they have {known}")
    found = {}
    for name in methods:
        own = {f"method.{key}": value for key, value in special.items() if key in options[name]}
        found[name] = load({"method.name": name} | own)
    return found


def plan_sweep(load: Load, over: Sequence[str], seeds: int) -> dict[str, list[Config]]:
    """Return the configs of a sweep: every combination of the values of `over` (`key=a,b,c`), with so many seeds.

    >>> from pushcen.config import load_config
    >>> points = plan_sweep(lambda more: load_config("digits", more), ["method.clusters=8,16", "network.loss=0,0.1"], 2)
    >>> [(label, len(configs)) for label, configs in points.items()][:2]
    [('method.clusters=8, network.loss=0', 2), ('method.clusters=8, network.loss=0.1', 2)]
    """
    check_count("seeds", seeds, 1)
    axes = [[(key, value) for value in values] for key, values in map(_axis, over)]
    if any(key == "seed" for axis in axes for key, _ in axis):
        raise OptionError(
            "--over seed=...: every point has the same seeds; say how many with --seeds, the first with --seed"
        )
    first = load({}).seed
    points = {}
    for point in itertools.product(*axes):
        label = ", ".join(f"{key}={value}" for key, value in point) or "as it stands"
        points[label] = [load(dict(point) | {"seed": seed}) for seed in range(first, first + seeds)]
    return points


def _axis(text: str) -> tuple[str, list[Text]]:
    key, equals, values = text.partition("=")
    found = [Text(value.strip()) for value in values.split(",")]
    if not equals or not key.strip() or not all(found):
        raise ConfigError(f"--over {text}: must be KEY=VALUE,VALUE,..., such as method.clusters=8,16,32")
    return key.strip(), found
