"""Flags of the command line: `--set network.loss=0.1`."""

from collections.abc import Iterable

from pushcen.config.build import Text
from pushcen.errors import ConfigError


def parse_settings(settings: Iterable[str]) -> dict[str, Text]:
    """Read `key=value` flags. What a value means is decided by its option's type.

    >>> parse_settings(["network.loss=0.1", "data.source=cifar10"])
    {'network.loss': '0.1', 'data.source': 'cifar10'}
    >>> parse_settings(["network.loss"])
    Traceback (most recent call last):
    pushcen.errors.ConfigError: --set network.loss: must be KEY=VALUE, such as network.loss=0.1
    """
    found: dict[str, Text] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {setting}: must be KEY=VALUE, such as network.loss=0.1")
        found[key.strip()] = Text(value.strip())
    return found
