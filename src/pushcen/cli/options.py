"""Options that several commands share, and how they become a config."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pushcen.config import Config

ConfigFile = Annotated[str, typer.Argument(metavar="[CONFIG]", help="A TOML file, or the name of a preset.")]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="network.loss=0.1, ...")]
Method = Annotated[str | None, typer.Option(help="method.name: pushcen, push-sum, swift, ..., or module:Class.")]
Task = Annotated[str | None, typer.Option(help="task.function: your own task, module:function.")]
Data = Annotated[str | None, typer.Option(help="data.source: digits, cifar10, ..., a file or a folder.")]
Alpha = Annotated[float | None, typer.Option(help="data.alpha: how skewed the data is divided.")]
Clients = Annotated[int | None, typer.Option(help="clients: how many there are.")]
Horizon = Annotated[float | None, typer.Option(help="horizon: the pseudo-time at which it ends.")]
Seed = Annotated[int | None, typer.Option(help="seed: the same seed, the same result.")]
Workers = Annotated[int | None, typer.Option(help="executor.workers: threads [as many as cores].")]
Runs = Annotated[Path, typer.Option(help="The folder of all runs.")]
Name = Annotated[str | None, typer.Option(help="The name of the run's folder [from task and method].")]
Track = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="tensorboard, mlflow, wandb, or module:Class; may be repeated.")
]

Strict = Annotated[
    bool, typer.Option("--strict", help="End the run if training diverges at one client; else the others go on.")
]


def settings(
    given: list[str] | None,
    *,
    method: str | None = None,
    task: str | None = None,
    data: str | None = None,
    alpha: float | None = None,
    clients: int | None = None,
    horizon: float | None = None,
    seed: int | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Put flags together, by the keys of the config; `--set` has the last word."""
    from pushcen.config import parse_settings

    flags = {
        "method.name": method,
        "task.function": task,
        "data.source": data,
        "data.alpha": alpha,
        "clients": clients,
        "horizon": horizon,
        "seed": seed,
        "executor.workers": workers,
    }
    return {key: value for key, value in flags.items() if value is not None} | dict(parse_settings(given or []))


def loader(source: str, changed: dict[str, Any]) -> "Callable[[dict[str, Any]], Config]":
    """Return what builds a config from file and flags, with further settings on top."""
    from pushcen.config import load_config

    return lambda more: load_config(source, changed | more)
