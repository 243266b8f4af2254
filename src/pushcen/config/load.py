"""Where a config comes from: a TOML file or a preset, nested values, and flags such as `--set network.loss=0.1`."""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pushcen.config.build import Text
from pushcen.config.config import Config
from pushcen.errors import ConfigError
from pushcen.methods import method_named


def load_config(
    source: str | Path | Mapping[str, Any] = "digits", settings: Mapping[str, Any] | None = None, *, real: bool = False
) -> Config:
    """Read a config: a TOML file, a preset by its name or nested values, with single settings by their full keys.

    With `real` it is for peers of a real network.
    """
    values = _copied(source) if isinstance(source, Mapping) else read_toml(source)
    settings = settings or {}
    if settings.get("data.owner") and isinstance(source, str) and source in presets():
        values.pop("clients", None)  # of the preset's data
    for key, value in settings.items():
        put(values, key, value)
    return Config.of(values, real=real)


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def presets() -> list[str]:
    """Return the names of the configs that come with pushcen.

    >>> "digits" in presets()
    True
    """
    folder = resources.files("pushcen.config") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_toml(source: str | Path) -> dict[str, Any]:
    """Read a TOML file, or one of the presets by its name.

    >>> read_toml("digit")
    Traceback (most recent call last):
    pushcen.errors.ConfigError: digit: no such file; the configs that come with pushcen are digits, stragglers
    """
    path = Path(source)
    try:
        if str(source) in presets():
            text = (resources.files("pushcen.config") / "presets" / f"{source}.toml").read_text("utf-8")
        else:
            text = path.read_text("utf-8")
        return tomllib.loads(text)
    except FileNotFoundError:
        known = ", ".join(presets())
        raise ConfigError(f"{source}: no such file; the configs that come with pushcen are {known}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{source}: {error}") from None


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


def put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `network.loss` in nested values. Another method keeps those options that it has, too.

    >>> values = {"method": {"name": "pushcen", "clusters": 8, "receivers": 4}}
    >>> put(values, "method.name", "push-sum"); values
    {'method': {'name': 'push-sum', 'receivers': 4}}
    """
    if key == "method" and isinstance(value, str):
        key = "method.name"
    *sections, last = key.split(".")
    if not all([*sections, last]):
        raise ConfigError(f"{key!r}: must be a key such as network.loss")
    at = values
    for name in sections:
        inner = at.setdefault(name, {})
        if name == "method" and isinstance(inner, str):
            inner = at[name] = {"name": inner}
        if not isinstance(inner, dict):
            raise ConfigError(f"{key}: {name} is a value, not a section")
        at = inner
    if key == "method.name" and isinstance(value, str) and at.get("name", "pushcen") != value:
        has = {option.name for option in dataclasses.fields(method_named(value))}
        for name in [name for name in at if name != "name" and name not in has]:
            del at[name]
    at[last] = value
