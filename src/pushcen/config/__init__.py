"""One typed config, from TOML files and flags; every option is defined once, by the package that reads it.

>>> from pushcen.config import load_config
>>> load_config("digits", {"network.loss": 0.1}).network.loss
0.1
>>> load_config("digits", {"network.los": 0.1})
Traceback (most recent call last):
pushcen.errors.ConfigError: network.los = 0.1: no such key. Did you mean network.loss? network has ...
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pushcen.config.build import Builder, Registry, Text
from pushcen.config.config import Config, TaskOptions, plain_method, plain_world, put
from pushcen.config.flags import parse_settings
from pushcen.config.toml import presets, read_toml
from pushcen.errors import ConfigError
from pushcen.simulation.world import differences, flat


def load_config(source: str | Path | Mapping[str, Any] = "digits", settings: Mapping[str, Any] | None = None) -> Config:
    """Read a config: a TOML file, a preset by its name or nested values, with single settings by their full keys."""
    values = dict(source) if isinstance(source, Mapping) else read_toml(source)
    values = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    for key, value in (settings or {}).items():
        put(values, key, value)
    return Config.of(values)


__all__ = [
    "Builder",
    "Config",
    "ConfigError",
    "Registry",
    "TaskOptions",
    "Text",
    "differences",
    "flat",
    "load_config",
    "parse_settings",
    "plain_method",
    "plain_world",
    "presets",
    "put",
    "read_toml",
]
