"""What a peer learns and how, from a task's name and single settings."""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pushcen.learning import TaskFunction, Training, load_task
from pushcen.methods import Method, method_named
from pushcen.runtime.settings import Runtime


@dataclass(frozen=True)
class PeerConfig:
    """What all of a peer's config says."""

    task: TaskFunction
    method: Method
    training: Training
    runtime: Runtime
    seed: int
    clients: int


def load(task: str, settings: Mapping[str, str]) -> PeerConfig:
    """Read it."""
    values: dict[str, dict[str, Any]] = {"method": {}, "training": {}, "runtime": {}, "": {}}
    for key, text in settings.items():
        section, _, name = key.rpartition(".")
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        values[section][name] = value
    method = method_named(values["method"].pop("name", values[""].pop("method", "pushcen")))(**values["method"])
    runtime = dataclasses.replace(Runtime(), **values["runtime"])
    rest = values[""]
    return PeerConfig(
        load_task(task), method, Training(**values["training"]), runtime, rest.get("seed", 0), rest.get("clients", 0)
    )
