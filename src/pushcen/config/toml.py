"""Configs as TOML files."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pushcen.errors import ConfigError


def presets() -> list[str]:
    """Name the configs that come with pushcen.

    >>> "digits" in presets()
    True
    """
    folder = resources.files("pushcen.config") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_toml(source: str | Path) -> dict[str, Any]:
    """Read a TOML file, or one of the presets by its name.

    >>> read_toml("digit")
    Traceback (most recent call last):
    pushcen.errors.ConfigError: digit: no such file; the configs that come with pushcen are digits
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
