"""Many runs, watched: how far they are, what to do when they are interrupted, and which have failed."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from pushcen.cli.options import Changed
from pushcen.cli.simulate import tell_of_table

if TYPE_CHECKING:
    from pushcen.runs import PlannedRun, Report, Run, RunJob

    Then = Callable[[Run], object]


def in_turn(
    jobs: "Sequence[RunJob]", *, track: Sequence[str] = (), strict: bool = False, then: "Then | None" = None
) -> "list[Report]":
    """Carry out runs one after the other, with a progress bar for each."""
    from pushcen.cli.progress import RunProgress
    from pushcen.runs import one_by_one

    console, at = Console(stderr=True), {job.folder: number for number, job in enumerate(jobs, 1)}

    def watch(job: "RunJob") -> RunProgress:
        return RunProgress(f"{job.name} ({at[job.folder]} of {len(jobs)})", console)

    with _saved_when_interrupted(console):
        return one_by_one(jobs, watch=watch, track=track, strict=strict, then=then)


def in_processes(
    jobs: "Sequence[RunJob]",
    at_once: int,
    *,
    track: Sequence[str] = (),
    strict: bool = False,
    then: "Then | None" = None,
) -> "list[Report]":
    """Carry out several runs at a time, with a live table of those that are running."""
    from pushcen.cli.progress import CampaignProgress
    from pushcen.runs import carry_out

    console = Console(stderr=True)
    with _saved_when_interrupted(console), CampaignProgress(jobs, console) as progress:
        return carry_out(jobs, at_once=at_once, track=track, strict=strict, tell=progress.tell, then=then)


def end_on_failure(reports: "Sequence[Report]", *, show: bool = False) -> None:
    """Name the runs that are not finished, and why, and exit with 1; only count them, if nothing was to be run."""
    failed = [report for report in reports if not report.done]
    if not failed:
        return
    console = Console(stderr=True)
    if show:
        console.print(f"{len(failed)} of {len(reports)} runs are not finished.", highlight=False)
        return
    for report in failed:
        said = f"{report.job.name}: {report.error or 'was interrupted'}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(failed)} runs are not finished; run the same command to go on.", highlight=False)
    raise typer.Exit(1)


@dataclass(frozen=True)
class ManyRuns:
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

    def folder(self, planned: "list[PlannedRun]") -> Path:
        """Return the folder that the runs of a plan are, or are to be, in."""
        from pushcen.runs import folder_for, folder_name

        name = folder_name(f"{self.words[0]}-{planned[0].config.task_name}")
        configs = {run.name: run.config for run in planned}
        return self.runs / self.name if self.name else folder_for(self.runs, name, configs)

    def carry_out(
        self, planned: "list[PlannedRun]", list_: bool, slurm: Path | None, show: bool
    ) -> "tuple[Path, list[Report]]":
        """Carry out a plan, and return its folder and a report of each run; or only do what is asked for instead."""
        from pushcen.analysis import draw_accuracy
        from pushcen.runs import place, report_of

        first, folder = planned[0].config, self.folder(planned)
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

    def _write_commands(
        self, planned: "list[PlannedRun]", jobs: "list[RunJob]", folder: Path, slurm: Path | None
    ) -> None:
        """Print a command for each run, or write them into a file for Slurm, and say what to do with it."""
        from pushcen.runs import folder_name
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
        slurm.parent.mkdir(parents=True, exist_ok=True)
        slurm.write_text(slurm_script(folder_name(folder.name), lines, after) + "\n", "utf-8")
        typer.echo(f"{len(lines)} runs: sbatch {shlex.quote(str(slurm))}\nthe table of what is finished: {after}")


def point_flags(over: list[str] | None, seeds: int) -> list[str]:
    """Return `--over` and `--seeds` as they were given."""
    return [word for axis in over or [] for word in ("--over", axis)] + ["--seeds", str(seeds)] * (seeds > 1)


@contextmanager
def _saved_when_interrupted(console: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console.print("interrupted; everything is saved. Run the same command to go on.", highlight=False)
        raise typer.Exit(130) from None
