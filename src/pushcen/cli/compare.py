"""`pushcen compare` and `sweep`: methods in the same worlds, or many settings, each with several seeds."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli.campaign import end_on_failure, in_processes, in_turn
from pushcen.cli.options import (
    Changed,
    ConfigFile,
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
from pushcen.cli.simulate import tell_of_table

if TYPE_CHECKING:
    from pushcen.config import Config
    from pushcen.runs import PlannedRun, Report, Run, RunJob
    from pushcen.runs.plans import Axes, Settings

SIX = "pushcen,pushcen-lean,async-dfedavg,swift,divshare,independent"


@with_flags(without=["method"])
def compare(
    config: ConfigFile = "digits",
    methods: Annotated[
        str,
        typer.Option(
            help=f"Names as in simulate --method, separated by commas [{SIX.replace(',', ', ')}].", show_default=False
        ),
    ] = SIX,
    over: Over = None,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
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
    """Run several methods in the same worlds: same data, same join times, same first weights, seed by seed.

    What is finished is not run again; what was interrupted goes on. An option `method.X` goes to the methods that have
    it, `methods.NAME.X` to the one of that name. Every method runs at every point of `--over` with every seed.
    """
    from pushcen.runs import method_settings, parse_axes, plan_comparison

    special = {key: value for key, value in changed.items() if key.startswith("method.")}
    common = {key: value for key, value in changed.items() if key not in special}
    names = [method.strip() for method in methods.split(",") if method.strip()]
    axes = parse_axes(over or [])
    planned = plan_comparison(loader(config, common), method_settings(names, special), axes, seeds)
    words = ["compare", config, "--methods", methods, *_flags(over, seeds)]
    how = _How(words, changed, common, name, runs, jobs, track or [], strict)
    folder, reports = how.carry_out(planned, list_, slurm, show)
    if done := [how.run_of(report) for report in reports if report.done]:
        _show_comparison(done, folder, planned[0].config)
    end_on_failure([] if show else reports)


@with_flags()
def sweep(
    config: ConfigFile = "digits",
    over: Over = None,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
    figure: Annotated[str, typer.Option(help="What is compared: accuracy, delayed_best, ... [the metric].")] = "",
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
    words = ["sweep", config, *_flags(over, seeds), *(["--figure", figure] if figure else [])]
    how = _How(words, changed, changed, name, runs, jobs, track or [], strict)
    folder, reports = how.carry_out(planned, list_, slurm, show)
    if done := {report.job.name: how.run_of(report) for report in reports if report.done}:
        _show_sweep(planned, axes, done, folder, figure)
    end_on_failure([] if show else reports)


@dataclass(frozen=True)
class _How:
    """How `compare` or `sweep` was called: what the two have in common."""

    words: list[str]
    """Its own arguments."""
    changed: Changed
    common: Changed
    """What of it goes to every run."""
    name: str | None
    runs: Path
    jobs: int
    track: list[str]
    strict: bool

    def carry_out(
        self, planned: "list[PlannedRun]", list_: bool, slurm: Path | None, show: bool
    ) -> "tuple[Path, list[Report]]":
        """Carry out a plan, and return its folder and a report of each run; or only do what is asked for instead."""
        from pushcen.analysis import draw_accuracy
        from pushcen.runs import folder_for, folder_name, place, report_of

        first = planned[0].config
        name = folder_name(f"{self.words[0]}-{first.task_name}")
        configs = {run.name: run.config for run in planned}
        folder = self.runs / self.name if self.name else folder_for(self.runs, name, configs)
        jobs = place(planned, folder)
        if list_ or slurm:
            self._write_commands(planned, jobs, folder, slurm)
            raise typer.Exit
        tell_of_table(first)
        if show:
            return folder, [report_of(job) for job in jobs]
        if self.jobs == 1:
            return folder, in_turn(jobs, track=self.track, strict=self.strict, then=draw_accuracy)
        return folder, in_processes(jobs, self.jobs, track=self.track, strict=self.strict, then=draw_accuracy)

    def run_of(self, report: "Report") -> "Run":
        """Return the run of a report, as its folder has it."""
        from pushcen.runs import Run

        return Run.open(report.job.folder)

    def _write_commands(
        self, planned: "list[PlannedRun]", jobs: "list[RunJob]", folder: Path, slurm: Path | None
    ) -> None:
        """Print a command for each run, or write them into a file for Slurm, and say what to do with it."""
        from pushcen.runs.commands import shell_line, slurm_script

        tracked = [word for tracker in self.track for word in ("--track", tracker)]
        options = [*tracked, *(["--strict"] if self.strict else [])]
        lines = [
            shell_line(
                ["pushcen", "simulate", self.words[1], "--folder", str(job.folder), *options],
                self.common | run.settings,
            )
            for run, job in zip(planned, jobs, strict=True)
        ]
        if slurm is None:
            typer.echo("\n".join(lines))
            return
        where = ["--runs", str(folder.parent), "--name", folder.name]
        after = shell_line(["pushcen", *self.words, *where, "--show"], self.changed)
        slurm.write_text(slurm_script(folder.name, lines, after) + "\n", "utf-8")
        typer.echo(f"{len(lines)} runs: sbatch {shlex.quote(str(slurm))}\nthe table of what is finished: {after}")


def _flags(over: list[str] | None, seeds: int) -> list[str]:
    return [word for axis in over or [] for word in ("--over", axis)] + ["--seeds", str(seeds)] * (seeds > 1)


def _show_comparison(done: "list[Run]", folder: Path, first: "Config") -> None:
    """Print the table of all methods, draw the figure, and say where everything is."""
    from pushcen.analysis import comparison, group
    from pushcen.analysis.figures import accuracy
    from pushcen.analysis.groups import measure_of
    from pushcen.drawing import save

    groups = group(done)
    console = Console(highlight=False)
    console.print(comparison(groups, f"{first.task_name}, {first.clients} clients, the same world for all").rich())
    if figure := accuracy(groups):
        files = save(figure, folder, measure_of(groups).name)
        console.print(f"figure: {files[0]}", soft_wrap=True, markup=False)
    console.print(f"more figures and a page: pushcen report {folder}", soft_wrap=True, markup=False)


def _show_sweep(planned: "list[PlannedRun]", axes: "Axes", done: "dict[str, Run]", folder: Path, figure: str) -> None:
    """Print the table of all points, each beside the one that it is compared with, and write it into a file."""
    from pushcen.analysis import Group
    from pushcen.analysis import sweep as table
    from pushcen.runs import base_of, point_label

    words = {point_label(run.point): _in_words(run.config.method_name, run.point) for run in planned}
    groups, bases = {}, {}
    for label, shown in words.items():
        members = [run for run in planned if point_label(run.point) == label]
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
