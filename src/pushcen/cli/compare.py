"""`pushcen compare`: methods in the same worlds, each with several seeds."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pushcen.cli.campaign import ManyRuns, end_on_failure, point_flags
from pushcen.cli.options import (
    Base,
    Changed,
    Columns,
    ConfigFile,
    FigureName,
    Jobs,
    ListOnly,
    Name,
    Over,
    Rows,
    Runs,
    Seeds,
    ShowOnly,
    Slurm,
    Strict,
    TableForm,
    Target,
    Track,
    loader,
    with_flags,
)
from pushcen.cli.watch import NoBrowser, WatchIt, watched

if TYPE_CHECKING:
    from pushcen.analysis import Table
    from pushcen.config import Config
    from pushcen.runs import PlannedRun, Run

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
    rows: Rows = "",
    columns: Columns = "",
    base: Base = "",
    figure: FigureName = "",
    target: Target = None,
    table: TableForm = None,
    watch: WatchIt = False,
    no_browser: NoBrowser = False,
) -> None:
    """Run several methods in the same worlds: same data, same join times, same first weights, seed by seed.

    What is finished is not run again; what was interrupted goes on. An option `method.X` goes to the methods that have
    it, `methods.NAME.X` to the one of that name.

    Every method runs at every point of `--over` with every seed. With several seeds or points, the table has methods
    down and points across, each cell the mean ± SD over seeds and the difference to `--base` (the first method) on the
    same seeds.
    """
    from pushcen.runs import method_settings, parse_axes, plan_comparison

    special = {key: value for key, value in changed.items() if key.startswith("method.")}
    common = {key: value for key, value in changed.items() if key not in special}
    if target:
        common.setdefault("evaluation.targets", target)
    names = [method.strip() for method in methods.split(",") if method.strip()]
    axes = parse_axes(over or [])
    planned = plan_comparison(loader(config, common), method_settings(names, special), axes, seeds)
    many = seeds > 1 or bool(axes or rows or columns or base or figure)
    if many:
        columns = columns or ",".join(key for key in axes if key not in rows.split(","))
        base = base or ("" if rows else planned[0].config.method_name)
    layout = _Layout(rows, columns, base, figure, target or [])
    layout.check(planned, table)
    words = ["compare", config, "--methods", methods, *point_flags(over, seeds), *layout.flags()]
    how = ManyRuns(words, changed, common, name, runs, jobs, track or [], strict)
    watch = watch and not (list_ or slurm)
    with watched([how.folder(planned)] if watch else [], on=watch, browser=not no_browser):
        folder, reports = how.carry_out(planned, list_, slurm, show)
        if done := [report.run for report in reports if report.done]:
            if many:
                _show_worlds(layout, done, folder, table)
            else:
                _show_world(planned[0].config, done, folder, table, layout.targets)
        end_on_failure(reports, show=show)


@dataclass(frozen=True)
class _Layout:
    """How the table of several worlds is laid out."""

    rows: str
    columns: str
    base: str
    figure: str
    targets: list[float]

    def check(self, planned: "list[PlannedRun]", form: str | None) -> None:
        """Refuse what no table can have, before anything is run."""
        from pushcen.analysis.table import FORMATS
        from pushcen.checks import check_choice
        from pushcen.errors import OptionError

        if form is not None:
            check_choice("table", form, FORMATS)
        keys = {"method"}.union(*(run.config.identity() for run in planned))
        for option, given in (("rows", self.rows), ("columns", self.columns)):
            for key in filter(None, map(str.strip, given.split(","))):
                if key not in keys or key == "seed":
                    raise OptionError(f"{option} = {key!r}: must be method, or a key of the config such as data.alpha")
        methods = dict.fromkeys(run.config.method_name for run in planned)
        if self.base and not self.has_base(methods):
            raise OptionError(f"base = {self.base!r}: must be one of {', '.join(methods)}")

    def has_base(self, methods: Iterable[str]) -> bool:
        """Return whether the base is one of these methods, by name or title; where rows are no methods, always."""
        from pushcen.analysis.labels import title

        known = {name.lower() for method in methods for name in (method, title(method))}
        return bool(self.rows) or self.base.strip().lower() in known

    def flags(self) -> list[str]:
        """Return the options that it was made of."""
        given = {"--rows": self.rows, "--columns": self.columns, "--base": self.base, "--figure": self.figure}
        named = [word for name, value in given.items() if value for word in (name, value)]
        return named + [word for target in self.targets for word in ("--target", f"{target:g}")]


def _show_world(config: "Config", done: "list[Run]", folder: Path, form: str | None, targets: list[float]) -> None:
    """Print the table of methods in one world, draw the figure, and say where everything is."""
    from pushcen.analysis import comparison, group
    from pushcen.analysis.figures import accuracy
    from pushcen.analysis.groups import measure_of
    from pushcen.drawing import save

    groups = group(done)
    title = f"{config.task_name}, {config.clients} clients, the same world for all"
    console = _print(comparison(groups, title, targets), form)
    if figure := accuracy(groups):
        files = save(figure, folder, measure_of(groups).name)
        console.print(f"figure: {files[0]}", soft_wrap=True, markup=False)
    console.print(f"more figures and a page: pushcen report {folder}", soft_wrap=True, markup=False)
    console.print(f"see it happen, in the browser: pushcen watch {folder}", soft_wrap=True, markup=False)


def _show_worlds(layout: _Layout, done: "list[Run]", folder: Path, form: str | None) -> None:
    """Print and write the table of methods at every point over seeds, draw its figures, and say where they are."""
    from pushcen.analysis import cross, crossed_table, group
    from pushcen.analysis.figures import figures_of
    from pushcen.analysis.groups import measure_of
    from pushcen.drawing import save

    groups, crossing = group(done), cross(done, layout.rows, layout.columns)
    base = layout.base if layout.has_base(run.method for run in done) else ""  # it may have failed
    table = crossed_table(crossing, base, layout.figure, layout.targets)
    console = _print(table, form)
    table.save(folder, "table")
    console.print(f"table: {folder / 'table.md'}, .tex, .csv", soft_wrap=True, markup=False)
    name = measure_of(groups).name
    figures = figures_of(measure_of(groups), layout.targets, crossing.panels())
    for called in (name, f"{name}_bytes"):
        if drawn := figures[called][1](groups):
            console.print(f"figure: {save(drawn, folder, called)[0]}", soft_wrap=True, markup=False)
    more = shlex.join(["pushcen", "report", str(folder), *layout.flags()])
    console.print(f"more figures and a page: {more}", soft_wrap=True, markup=False)


def _print(table: "Table", form: str | None) -> Console:
    """Print a table, and return where to say the rest: beside it, if the table is for another program."""
    if form is None:
        console = Console(highlight=False)
        console.print(table.rich())
        return console
    typer.echo(table.to(form).rstrip("\n"))
    return Console(highlight=False, stderr=True)
