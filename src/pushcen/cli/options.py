"""Options that several commands share, each spelled once, and how they become settings of a config."""

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pushcen.config import Config

ConfigFile = Annotated[str, typer.Argument(metavar="CONFIG", help="A TOML file, or the name of a preset.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Any option of the config; may be repeated."),
]
Runs = Annotated[Path, typer.Option(help="The folder of all runs.")]
Name = Annotated[str | None, typer.Option(help="The name of the folder [by what is run].")]
Track = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="tensorboard, mlflow, wandb, or module:Class; may be repeated.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End the run if training diverges at one client [the others go on].")
]
Over = Annotated[
    list[str] | None, typer.Option(metavar="KEY=A,B,...", help="Such as data.alpha=0.1,0.4,1.0; may be repeated.")
]
Seeds = Annotated[int, typer.Option(min=1, help="How many seeds, from `seed` on.")]
Jobs = Annotated[
    int,
    typer.Option(min=1, help="Runs at a time, a process each; they share the cores [one by one]", show_default=False),
]
ListOnly = Annotated[
    bool, typer.Option("--list", help="Run nothing: print a command for each run, to be run anywhere, in any order.")
]
Slurm = Annotated[Path | None, typer.Option(help="Run nothing: write an array job for a Slurm cluster into this file.")]
ShowOnly = Annotated[bool, typer.Option("--show", help="Run nothing: show the table of what is finished.")]
Rows = Annotated[str, typer.Option(metavar="KEYS", help="A table with these down: method, or keys.")]
Columns = Annotated[str, typer.Option(metavar="KEYS", help="And these across, such as data.alpha.")]
Base = Annotated[str, typer.Option(metavar="ROW", help="The row that others are compared with, by seed.")]
FigureName = Annotated[
    str, typer.Option("--figure", help="What that table shows: accuracy, delayed_best, ... [the metric].")
]
Target = Annotated[
    list[float] | None, typer.Option(help="What it took to reach this value of the metric; may be repeated.")
]
TableForm = Annotated[str | None, typer.Option("--table", help="Only print the table: markdown, latex, csv or html.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="method.name: pushcen, pushcen-lean (a tenth of its bytes), push-sum, async-dfedavg, swift, swift-random, "
        "divshare, epidemic, sgp, quantized-push-sum, rasgp, d-psgd, choco, moniqua, ad-psgd, a2cid2, dspodfl, spafl, "
        "fedkd, independent, or module:Class.",
    ),
]
RealMethodName = Annotated[
    str | None, typer.Option("--method", help="method.name: as in simulate, but for those that need a fixed graph.")
]
Changed = dict[str, Any]
"""Settings by the keys of the config: what a command made by `with_flags` gets."""

_FLAGS: dict[str, tuple[str, Any]] = {  # the key that each sets, and what it may be
    "method": ("method.name", MethodName),
    "task": (
        "task.function",
        Annotated[str | None, typer.Option(help="task.function: your own, file.py:function or module:function.")],
    ),
    "data": (
        "data.source",
        Annotated[
            str | None,
            typer.Option(help="data.source: digits, cifar10, ..., a file, a folder."),
        ],
    ),
    "label": ("data.label", Annotated[str | None, typer.Option(help="data.label: the column of a table to learn.")]),
    "owner": (
        "data.owner",
        Annotated[str | None, typer.Option(help="data.owner: the column that says whose a row is: a client each.")],
    ),
    "metrics": (
        "task.metrics",
        Annotated[
            str | None,
            typer.Option(
                help="task.metrics: accuracy, f1, auroc, rmse, ...; several by commas, the first counts most."
            ),
        ],
    ),
    "alpha": (
        "data.alpha",
        Annotated[float | None, typer.Option(help="data.alpha: the smaller, the more skewed the division.")],
    ),
    "clients": ("clients", Annotated[int | None, typer.Option(help="clients: how many there are.")]),
    "horizon": (
        "horizon",
        Annotated[str | None, typer.Option(help="horizon: the pseudo-time at which it ends; '2 h', with time_unit.")],
    ),
    "seed": ("seed", Annotated[int | None, typer.Option(help="seed: the same seed, the same result.")]),
    "workers": (
        "executor.workers",
        Annotated[int | None, typer.Option(help="executor.workers: threads [as many as cores].")],
    ),
}


def with_flags(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command that takes `changed`: it gets `--set`, and a flag for each common option.

    `changed` has what was given, by the keys of the config; `--set` has the last word.

    >>> @with_flags(without=["method"])
    ... def show(*, changed: Changed) -> None:
    ...     print(changed)
    >>> show(clients=3, set_=["network.loss=0.1"])
    {'clients': 3, 'network.loss': '0.1'}
    """
    flags = {name: flag for name, flag in _FLAGS.items() if name not in without}
    types = {"set_": Set, **{name: kind for name, (_, kind) in flags.items()}}
    extra = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=t) for n, t in types.items()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            from pushcen.config import Text, parse_settings

            values = {key: given.pop(name, None) for name, (key, _) in flags.items()}
            named = {key: Text(v) if isinstance(v, str) else v for key, v in values.items() if v is not None}
            command(changed=named | dict(parse_settings(given.pop("set_", None) or [])), **given)

        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += extra if parameter.name == "changed" else [parameter]
        wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapped

    return decorate


def loader(source: str, changed: Changed) -> "Callable[[Changed], Config]":
    """Return a function that builds a config from file and flags, with further settings on top."""
    from pushcen.config import load_config

    return lambda more: load_config(source, changed | more)
