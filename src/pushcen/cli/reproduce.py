"""`pushcen reproduce`: the paper's tables, ours beside its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli.campaign import end_on_failure, in_processes
from pushcen.cli.options import Set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushcen.analysis.table import Table
    from pushcen.reproduce.experiment import Experiment
    from pushcen.reproduce.plan import Planned
    from pushcen.runs import Run, RunStore

COUNTED = ("table2", "table3", "appendix")


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="table1 ... table7, appendix, changes, bytes, lean, time, field, tuning, or a file."
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(help="cifar10, cifar100, tiny-imagenet; digits (field) [cifar10; all, where nothing is run]."),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="small (minutes), medium (CIFAR-10) or paper (its own size) [small; field, tuning: theirs]."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from that of the world on.")] = 1,
    alpha: Annotated[list[float] | None, typer.Option(help="Only this alpha; may be repeated.")] = None,
    rows: Annotated[str, typer.Option(help="Only these rows, separated by commas.")] = "",
    set_: Set = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Runs at a time, a process each [as many as cores; ray: 1].", show_default=False)
    ] = 0,
    executor: Annotated[str, typer.Option(help="What each run computes on: threads or ray.")] = "threads",
    address: Annotated[str, typer.Option(help="Address of the Ray cluster [one is started on this machine].")] = "",
    runs: Annotated[Path, typer.Option(help="The folder of all runs.")] = Path("runs/reproduce"),
    also: Annotated[list[Path] | None, typer.Option(help="Look for finished runs here, too.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs, and train nothing.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Run nothing: show the table of what is there.")] = False,
    table: Annotated[str, typer.Option(help="Print the table as markdown, latex, csv or html.")] = "",
    collect: Annotated[
        Path | None, typer.Option(help="Copy config, metrics and summary of the finished runs into this folder.")
    ] = None,
) -> None:
    """Run the paper's experiments, and show its own numbers beside ours. What is finished is not run again.

    table2, table3 and appendix are counted: nothing is trained. table5 is made of the runs of table1. changes shows
    what each of our changes to the paper's rules is worth, bytes what each method sends for its accuracy, lean what few
    bytes are best spent on, time how long each method takes on narrow lines, field all methods in one world, tuning
    what their options were chosen by.
    """
    from pushcen.analysis.table import FORMATS
    from pushcen.checks import check_choice
    from pushcen.config import parse_settings

    if table:
        check_choice("table", table, FORMATS)
    if what in COUNTED:
        for made in _counted(what, dataset):
            _print(made, table)
            typer.echo()
        return
    from pushcen.reproduce.experiment import read
    from pushcen.reproduce.plan import collect as copy
    from pushcen.reproduce.plan import plan
    from pushcen.runs import RunStore

    chosen = read(what).only(tuple(filter(None, rows.replace(" ", "").split(","))), tuple(alpha or ()))
    dataset, scale = dataset or "cifar10", scale or chosen.scale
    planned = plan(chosen, dataset, scale, seeds, parse_settings(set_ or []))
    place = f"{dataset}-{scale}"
    store = RunStore(runs / place, [folder / place for folder in also or []])
    if dry_run:
        _describe(chosen, planned, store, f"{dataset}, {scale} scale")
        return
    if not show:
        _carry_out(planned, store, jobs, executor, address)
    elif all(store.where(one.config) is None for one in planned):
        typer.echo(f"no such run is in {runs / place}; --also results shows those of the repository", err=True)
    _write(chosen, dataset, scale, planned, store, runs / "tables", table)
    if collect is not None:
        copied = copy(planned, store, collect / place)
        Console(stderr=True).print(f"{copied} runs copied into {collect / place}", highlight=False)


def _counted(what: str, dataset: str | None) -> "Sequence[Table]":
    from pushcen.reproduce import operations, paper, sizes
    from pushcen.reproduce.experiment import world

    if dataset is not None:
        world(dataset, "paper")
    sets = (dataset,) if dataset else paper.DATASETS
    if what == "table2":
        return [sizes.table2(sets), sizes.table6(sets)]
    return [operations.table3(sets)] if what == "table3" else [sizes.bits(sets), operations.clustering_operations(sets)]


def _carry_out(planned: "list[Planned]", store: "RunStore", jobs: int, executor: str, address: str) -> None:
    from pushcen.reproduce.plan import jobs_of
    from pushcen.simulation import ExecutorOptions

    kind = ExecutorOptions(kind=executor, workers=0 if executor == "ray" else 1, address=address)
    at_once = jobs or (1 if executor == "ray" else ExecutorOptions().size)
    end_on_failure(in_processes(jobs_of(planned, store, kind), at_once, then=_finish))


def _finish(run: "Run") -> None:
    """Draw a run; nothing will go on from it, and the checkpoints of hundreds are many gigabytes."""
    import shutil

    from pushcen.analysis import draw_accuracy
    from pushcen.folder import CHECKPOINT

    draw_accuracy(run)
    shutil.rmtree(run.folder / CHECKPOINT, ignore_errors=True)


def _write(
    experiment: "Experiment",
    dataset: str,
    scale: str,
    planned: "list[Planned]",
    store: "RunStore",
    folder: Path,
    form: str,
) -> None:
    from pushcen.reproduce.results import gather
    from pushcen.reproduce.tables import table

    made = table(experiment, dataset, scale, gather(planned, store))
    _print(made, form)
    folder.mkdir(parents=True, exist_ok=True)
    for ending, kind in (("md", "markdown"), ("tex", "latex"), ("csv", "csv")):
        (folder / f"{experiment.name}-{dataset}-{scale}.{ending}").write_text(made.to(kind) + "\n", "utf-8")


def _describe(experiment: "Experiment", planned: "list[Planned]", store: "RunStore", where: str) -> None:
    from pushcen.reproduce.plan import describe

    _print(describe(experiment, planned, store, where), "")


def _print(made: "Table", form: str) -> None:
    if form:
        typer.echo(made.to(form))
    else:
        Console(highlight=False).print(made.rich())
