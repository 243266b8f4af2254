"""Many runs, watched: how far they are, what to do when they are interrupted, and which have failed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pushcen.runs import Report, Run, RunJob

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


def end_on_failure(reports: "Sequence[Report]") -> None:
    """Name the runs that are not finished, and why, and exit with 1; do nothing if there are none."""
    failed = [report for report in reports if not report.done]
    if not failed:
        return
    console = Console(stderr=True)
    for report in failed:
        said = f"{report.job.name}: {report.error or 'was interrupted'}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(failed)} runs are not finished; run the same command to go on.", highlight=False)
    raise typer.Exit(1)


@contextmanager
def _saved_when_interrupted(console: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        console.print("interrupted; everything is saved. Run the same command to go on.", highlight=False)
        raise typer.Exit(130) from None
