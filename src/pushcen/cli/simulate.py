"""`pushcen simulate`: one run, live, into a folder."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli import options as o

if TYPE_CHECKING:
    from pushcen.config import Config
    from pushcen.runs import Run


def simulate(
    config: o.ConfigFile = "digits",
    set_: o.Set = None,
    method: o.Method = None,
    task: o.Task = None,
    data: o.Data = None,
    alpha: o.Alpha = None,
    clients: o.Clients = None,
    horizon: o.Horizon = None,
    seed: o.Seed = None,
    workers: o.Workers = None,
    name: o.Name = None,
    runs: o.Runs = Path("runs"),
    track: o.Track = None,
    strict: o.Strict = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Describe the world, and train nothing.")] = False,
) -> None:
    """Simulate many clients that train one model. With no argument: digits, 20 clients, PushCen."""
    from pushcen.config import load_config
    from pushcen.errors import RunError
    from pushcen.runs import Run, folder_name, free_folder, launch

    changed = o.settings(
        set_, method=method, task=task, data=data, alpha=alpha, clients=clients, horizon=horizon, seed=seed,
        workers=workers,
    )  # fmt: skip
    if resume is not None:
        there = Run.open(resume)
        chosen, folder = load_config(there.config, changed), resume
        if there.finished:
            raise RunError(f"{resume}: is finished; there is nothing to go on with")
    else:
        chosen = load_config(config, changed)
        folder = runs / name if name else free_folder(runs, folder_name(f"{chosen.task_name}-{chosen.method_name}"))
        if folder.exists():
            raise RunError(f"{folder}: exists; go on with it by --resume {folder}, or choose another name")
    if dry_run:
        describe(chosen, Console(highlight=False))
        return
    again = f"pushcen simulate --resume {folder}"
    show(watched(chosen, folder, chosen.method_name, track or [], again, start=partial(launch, strict=strict)))


def watched(
    config: "Config", folder: Path, label: str, track: list[str], again: str, start: "Callable[..., Run]"
) -> "Run":
    """Carry a run out under the user's eyes; where it is interrupted, say how to go on, and stop."""
    from pushcen.cli.progress import Watch

    console = Console(stderr=True)
    with Watch(label, console) as watch:
        run = start(config, folder, observers=[watch], track=track)
    if not run.finished:
        at = run.number("time") or 0.0
        console.print(f"interrupted after pseudo-time {at:g}; everything is saved.", highlight=False)
        console.print(f"go on with: {again}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130)
    return run


def show(run: "Run") -> None:
    """Print the closing table, draw the figure, and say where everything is."""
    from pushcen.analysis import comparison, draw_accuracy, group
    from pushcen.folder import METRICS

    console = Console(highlight=False)
    console.print(comparison(group([run])).rich())
    draw_accuracy(run)
    files = ", ".join(name for name in ("accuracy.png", METRICS) if (run.folder / name).is_file())
    console.print(f"{run.folder}: {files}", soft_wrap=True, markup=False)


def describe(config: "Config", console: Console) -> None:
    """Print the world that a config makes, with nothing trained."""
    from pushcen.analysis import forecast_table
    from pushcen.runs.forecast import forecast

    with Console(stderr=True).status("loading and dividing the data ..."):
        table = forecast_table(forecast(config))
    console.print(table.rich())
