"""`pushcen simulate`, `compare` and `sweep`: one run, several methods in one world, or many settings, into folders."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli.options import Changed, ConfigFile, Name, Runs, Strict, Track, loader, with_flags

if TYPE_CHECKING:
    from pushcen.config import Config
    from pushcen.runs import Run

SIX = "pushcen,pushcen-lean,async-dfedavg,swift,divshare,independent"
_THE_SAME = "the same command; what is finished is not run again"


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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Describe the run, and train nothing.")] = False,
) -> None:
    """Simulate many clients that train one model. With no argument: digits, 20 clients, PushCen."""
    from pushcen.config import load_config
    from pushcen.errors import RunError
    from pushcen.runs import Run, folder_name, free_folder

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
    _tell_of_table(chosen)
    if dry_run:
        _describe(chosen)
        return
    again = f"pushcen simulate --resume {folder}"
    _show(_watched(chosen, folder, chosen.method_name, again, track=track, strict=strict))


@with_flags(without=["method"])
def compare(
    config: ConfigFile = "digits",
    methods: Annotated[
        str,
        typer.Option(
            help=f"Names as in simulate --method, separated by commas [{SIX.replace(',', ', ')}].", show_default=False
        ),
    ] = SIX,
    *,
    changed: Changed,
    name: Name = None,
    runs: Runs = Path("runs"),
    track: Track = None,
    strict: Strict = False,
) -> None:
    """Run several methods in the same world: same data, same join times, same first weights.

    What is finished is not run again; what was interrupted goes on. An option `method.X` goes to the methods that have
    it, `methods.NAME.X` to the one of that name.
    """
    from pushcen.analysis import comparison, draw_accuracy, group
    from pushcen.analysis.figures import accuracy
    from pushcen.analysis.groups import measure_of
    from pushcen.drawing import save
    from pushcen.runs import folder_for, folder_name, plan_comparison

    special = {key: value for key, value in changed.items() if key.startswith("method.")}
    load = loader(config, {key: value for key, value in changed.items() if key not in special})
    names = [method.strip() for method in methods.split(",") if method.strip()]
    configs = {folder_name(label): c for label, c in plan_comparison(load, names, special).items()}
    first = next(iter(configs.values()))
    folder = runs / name if name else folder_for(runs, folder_name(f"compare-{first.task_name}"), configs)
    _tell_of_table(first)
    done = []
    for at, (label, chosen) in enumerate(configs.items(), 1):
        shown = f"{label} ({at} of {len(configs)})"
        done.append(_watched(chosen, folder / label, shown, _THE_SAME, track=track, strict=strict, then=draw_accuracy))
    groups = group(done)
    console = Console(highlight=False)
    console.print(comparison(groups, f"{first.task_name}, {first.clients} clients, the same world for all").rich())
    if figure := accuracy(groups):
        files = save(figure, folder, measure_of(groups).name)
        console.print(f"figure: {files[0]}", soft_wrap=True, markup=False)
    console.print(f"more figures and a page: pushcen report {folder}", soft_wrap=True, markup=False)


@with_flags()
def sweep(
    config: ConfigFile = "digits",
    over: Annotated[
        list[str] | None, typer.Option(metavar="KEY=A,B,...", help="Such as method.clusters=8,16,32; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from `seed` on.")] = 1,
    figure: Annotated[str, typer.Option(help="What is compared: accuracy, delayed_best, ... [the metric].")] = "",
    *,
    changed: Changed,
    name: Name = None,
    runs: Runs = Path("runs"),
    track: Track = None,
    strict: Strict = False,
) -> None:
    """Run every combination of some settings, with several seeds; show paired differences to the first one.

    What is finished is not run again; what was interrupted goes on.
    """
    from pushcen.analysis import Group, draw_accuracy
    from pushcen.analysis import sweep as table
    from pushcen.runs import folder_for, folder_name, plan_sweep

    points = plan_sweep(loader(config, changed), over or [], seeds)
    configs = {f"{folder_name(label)}/seed-{c.seed}": c for label, some in points.items() for c in some}
    first = next(iter(configs.values()))
    folder = runs / name if name else folder_for(runs, folder_name(f"sweep-{first.task_name}"), configs)
    _tell_of_table(first)
    done = {}
    for at, (part, chosen) in enumerate(configs.items(), 1):
        shown = f"{part} ({at} of {len(configs)})"
        done[part] = _watched(chosen, folder / part, shown, _THE_SAME, track=track, strict=strict, then=draw_accuracy)
    groups = {}
    for label, some in points.items():
        members = tuple(done[f"{folder_name(label)}/seed-{c.seed}"] for c in some)
        groups[_in_words(some[0].method_name, label)] = Group(label, members)
    made = table(groups, figure)
    console = Console(highlight=False)
    console.print(made.rich())
    (folder / "sweep.csv").write_text(made.to("csv"), "utf-8")
    console.print(f"table: {folder / 'sweep.csv'}", soft_wrap=True, markup=False)


def _watched(
    config: "Config",
    folder: Path,
    label: str,
    again: str,
    *,
    track: list[str] | None,
    strict: bool,
    then: "Callable[[Run], object] | None" = None,
) -> "Run":
    """Carry out a run with a progress bar; where it is interrupted, say how to go on, and stop."""
    from pushcen.cli.progress import RunProgress
    from pushcen.runs import launch

    console = Console(stderr=True)
    with RunProgress(label, console) as progress:
        run = launch(config, folder, observers=[progress], track=track or [], strict=strict, then=then)
    if not run.finished:
        at = run.number("time") or 0.0
        console.print(f"interrupted after pseudo-time {at:g}; everything is saved.", highlight=False)
        console.print(f"go on with: {again}", markup=False, highlight=False, soft_wrap=True)
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


def _tell_of_table(config: "Config") -> None:
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


def _in_words(method: str, label: str) -> str:
    """Return the label of a point in words: `method.clusters=8, network.loss=0` is "K 8, loss 0"."""
    from pushcen.analysis.labels import option

    parts = [(part, *part.partition("=")[::2]) for part in label.split(", ")]
    return ", ".join(option(method, key, value) or part if "=" in part else part for part, key, value in parts)
