"""`pushcen sweep`: many settings, each with several seeds."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pushcen.cli.campaign import ManyRuns, end_on_failure, point_flags
from pushcen.cli.options import (
    Changed,
    ConfigFile,
    FigureName,
    Jobs,
    ListOnly,
    Name,
    Over,
    Runs,
    Seeds,
    ShowOnly,
    Slurm,
    Strict,
    Track,
    loader,
    with_flags,
)

if TYPE_CHECKING:
    from pushcen.runs import PlannedRun, Run
    from pushcen.runs.plans import Axes, Settings


@with_flags()
def sweep(
    config: ConfigFile = "digits",
    over: Over = None,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
    figure: FigureName = "",
    *,
    changed: Changed,
    name: Name = None,
    runs: Runs = Path("runs"),
    track: Track = None,
    strict: Strict = False,
    list_: ListOnly = False,
    slurm: Slurm = None,
    show: ShowOnly = False,
) -> None:
    """Run every combination of some settings, with several seeds; show paired differences to the first one.

    What is finished is not run again; what was interrupted goes on. Where options of the method are among the settings,
    differences are to the first of those in the same world.
    """
    from pushcen.runs import parse_axes, plan_sweep

    axes = parse_axes(over or [])
    planned = plan_sweep(loader(config, changed), axes, seeds)
    words = ["sweep", config, *point_flags(over, seeds), *(["--figure", figure] if figure else [])]
    how = ManyRuns(words, changed, changed, name, runs, jobs, track or [], strict)
    folder, reports = how.carry_out(planned, list_, slurm, show)
    if done := {report.job.name: report.run for report in reports if report.done}:
        _show_sweep(planned, axes, done, folder, figure)
    end_on_failure(reports, show=show)


def _show_sweep(planned: "list[PlannedRun]", axes: "Axes", done: "dict[str, Run]", folder: Path, figure: str) -> None:
    """Print the table of all points, each beside the one that it is compared with, and write it into a file."""
    from pushcen.analysis import Group
    from pushcen.analysis import sweep as table
    from pushcen.runs import base_of, point_label

    points: dict[str, list[PlannedRun]] = {}
    for run in planned:
        points.setdefault(point_label(run.point), []).append(run)
    words = {label: _in_words(some[0].config.method_name, some[0].point) for label, some in points.items()}
    groups, bases = {}, {}
    for label, members in points.items():
        shown = words[label]
        bases[shown] = words[point_label(base_of(members[0].point, axes))]
        if found := tuple(done[run.name] for run in members if run.name in done):
            groups[shown] = Group(label, found)
    made = table(groups, figure, bases)
    console = Console(highlight=False)
    console.print(made.rich())
    (folder / "sweep.csv").write_text(made.to("csv"), "utf-8")
    console.print(f"table: {folder / 'sweep.csv'}", soft_wrap=True, markup=False)


def _in_words(method: str, point: "Settings") -> str:
    """Return a point in words: `method.clusters=8, network.loss=0` is "K 8, loss 0"."""
    from pushcen.analysis.labels import option

    words = [option(method, key, value) or f"{key}={value}" for key, value in point.items()]
    return ", ".join(words) or "as it stands"
