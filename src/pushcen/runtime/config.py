"""What a peer learns and how, from a task's name, a preset or a TOML file: the same config as a simulation's."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushcen.config import Config


def peer_config(task: str, settings: Iterable[str] = ()) -> "Config":
    """Read a config: `module:function` is a task with all else as usual, everything else a preset or a TOML file.

    >>> peer_config("digits", ["method.clusters=8", "runtime.patience=1.0"]).runtime.patience
    1.0
    """
    from pushcen.config import load_config, parse_settings

    given = parse_settings(settings)
    if ":" in task:
        return load_config({"task": {"function": task}}, given)
    return load_config(task, given)
