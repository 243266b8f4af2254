"""One typed config, from TOML files and flags; every option is defined once, by the package that reads it.

>>> from pushcen.config import load_config
>>> load_config("digits", {"network.loss": 0.1}).network.loss
0.1
>>> load_config("digits", {"network.los": 0.1})
Traceback (most recent call last):
pushcen.errors.ConfigError: network.los = 0.1: no such key. Did you mean network.loss? network has ...
"""

from pushcen.config.build import Builder, Registry, Text
from pushcen.config.config import Config, TaskOptions, plain_method, plain_world
from pushcen.config.load import load_config, parse_settings, presets, put, read_toml
from pushcen.errors import ConfigError
from pushcen.simulation.options import NeighbourOptions, StalenessOptions, differences, flat

__all__ = [
    "Builder",
    "Config",
    "ConfigError",
    "NeighbourOptions",
    "Registry",
    "StalenessOptions",
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
