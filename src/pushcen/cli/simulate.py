"""`pushcen simulate`: one run, in a folder of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli.options import Changed, ConfigFile, Name, Runs, Strict, Track, with_flags
from pushcen.cli.watch import NoBrowser, WatchIt, watched

if TYPE_CHECKING:
    from pushcen.config import Config
    from pushcen.runs import Run


@with_flags()
def simulate(
    config: ConfigFile = "digits",
    *,
    changed: Changed,
    name: Name = None,
    runs: Runs = Path("runs"),
    track: Track = None,
    strict: Strict = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="The run's folder: a new one, or one with this run, which goes on if need be.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Describe the run, and train nothing.")] = False,
    watch: WatchIt = False,
    no_browser: NoBrowser = False,
) -> None:
    """Simulate many clients that train one model. With no argument: digits, 20 clients, PushCen."""
    from pushcen.config import load_config
    from pushcen.errors import OptionError, RunError
    from pushcen.runs import Run, folder_name, free_folder

    if folder is not None and (resume is not None or name is not None):
        raise OptionError(f"--folder {folder}: says where the run is; leave out --{'resume' if resume else 'name'}")
    if resume is not None:
        there = Run.open(resume)
        chosen, folder = load_config(there.config, changed), resume
        if there.finished:
            raise RunError(f"{resume}: is finished; there is nothing to go on with")
    else:
        chosen = load_config(config, changed)
    if folder is None:
        folder = runs / name if name else free_folder(runs, folder_name(f"{chosen.task_name}-{chosen.method_name}"))
        if folder.exists():
            raise RunError(f"{folder}: exists; go on with it by --resume {folder}, or choose another name")
    tell_of_table(chosen)
    if dry_run:
        _describe(chosen)
        return
    with watched([folder], on=watch, browser=not no_browser):
        _show(_carried_out(chosen, folder, track=track, strict=strict))


def _carried_out(config: "Config", folder: Path, *, track: list[str] | None, strict: bool) -> "Run":
    """Carry out a run with a progress bar; where it is interrupted, say how to go on, and stop."""
    from pushcen.cli.progress import RunProgress
    from pushcen.runs import launch

    console = Console(stderr=True)
    with RunProgress(config.method_name, console) as progress:
        run = launch(config, folder, observers=[progress], track=track or [], strict=strict)
    if not run.finished:
        at = run.number("time") or 0.0
        console.print(f"interrupted after pseudo-time {at:g}; everything is saved.", highlight=False)
        again = f"go on with: pushcen simulate --resume {folder}"
        console.print(again, markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130)
    return run


def _show(run: "Run") -> None:
    """Print the closing table, draw the figure, and say where everything is."""
    from pushcen.analysis import comparison, draw_accuracy, group
    from pushcen.folder import METRICS

    console = Console(highlight=False)
    console.print(comparison(group([run])).rich())
    draw_accuracy(run)
    files = ", ".join(name for name in (f"{run.measure.name}.png", METRICS) if (run.folder / name).is_file())
    console.print(f"{run.folder}: {files}", soft_wrap=True, markup=False)


def tell_of_table(config: "Config") -> None:
    """Print what is learnt from what, where it is the columns of a table."""
    if not config.task.function and config.data.is_table:
        from pushcen.cli.data import printable
        from pushcen.tasks import TableTask

        task = config.data_task()
        assert isinstance(task, TableTask)
        Console(stderr=True, highlight=False).print(printable(task.in_words(config.clients)), soft_wrap=True)


def _describe(config: "Config") -> None:
    """Print what a run of this config would be, with nothing trained."""
    from pushcen.analysis import forecast_table
    from pushcen.runs.forecast import forecast

    with Console(stderr=True).status("loading and dividing the data ..."):
        table = forecast_table(forecast(config))
    Console(highlight=False).print(table.rich())
