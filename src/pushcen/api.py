"""Simulations from Python: `pushcen.simulate(...)` and `pushcen.compare(...)`. Imports torch only when called."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pushcen.analysis import Table
    from pushcen.config import Config
    from pushcen.learning import TaskFunction
    from pushcen.methods import Method
    from pushcen.runs import Report, Run
    from pushcen.simulation import Observer, World

    Source = str | Path | Mapping[str, Any] | World


@dataclass(frozen=True)
class Result:
    """The outcome of one run. In a notebook it shows its table and its figure."""

    run: "Run"

    @property
    def folder(self) -> Path:
        """The folder with everything that the run wrote."""
        return self.run.folder

    @property
    def finished(self) -> bool:
        """Whether it came to its end; if it was interrupted, `simulate(..., folder=...)` goes on with it."""
        return self.run.finished

    @property
    def summary(self) -> dict[str, Any]:
        """The figures at the end; empty while it is not finished."""
        return self.run.summary or {}

    @property
    def frame(self) -> "pd.DataFrame":
        """A row for each evaluation: time, accuracy (or another metric), loss, bytes_sent, ..."""
        return self.run.frame()

    @property
    def clients(self) -> "pd.DataFrame":
        """The accuracy, or first metric, of each client (with `evaluation.per_client`): times down, clients across."""
        return self.run.client_frame()

    @property
    def table(self) -> "Table":
        """The closing table."""
        return Comparison({self.run.method: self}).table

    def plot(self, figure: str = "") -> "Figure | None":
        """Draw accuracy (or what else the run is measured by), delayed, accuracy_bytes or mass, with matplotlib."""
        return Comparison({self.run.method: self}).plot(figure)

    def __repr__(self) -> str:
        return f"Result({self.folder})"

    def _repr_html_(self) -> str:
        return Comparison({self.run.method: self})._repr_html_()


@dataclass(frozen=True)
class Comparison(Mapping[str, Result]):
    """Results by method, all of the same world; of several worlds, by the name of the run's folder.

    In a notebook it shows its table and its figure.
    """

    results: dict[str, Result]
    worlds: tuple[str, ...] = ()
    """The keys that tell several worlds apart: `seed`, and those of `over`."""

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def frame(self) -> "pd.DataFrame":
        """All rows of all runs, with a column `method`, and one for each key that tells their worlds apart."""
        import pandas as pd

        def rows(run: "Run") -> "pd.DataFrame":
            known = run.identity()
            return run.frame().assign(method=run.method, **{key: known.get(key) for key in self.worlds})

        return pd.concat([rows(result.run) for result in self.values()], ignore_index=True)

    @property
    def table(self) -> "Table":
        """One row for each method; of several worlds, points across, and differences to the first method."""
        from pushcen.analysis import comparison, crossed, group

        runs = [result.run for result in self.values()]
        if not self.worlds:
            return comparison(group(runs))
        return crossed(runs, columns=self.worlds[1:], base=runs[0].method)

    def plot(self, figure: str = "") -> "Figure | None":
        """Draw accuracy, delayed, accuracy_bytes, bytes_per_push or mass; None where there is nothing to draw.

        Runs that are measured by something else have its name in place of accuracy; it is drawn if nothing is named.
        Of several worlds there is a panel for each point.
        """
        from pushcen.analysis import cross, group
        from pushcen.analysis.figures import figures_of
        from pushcen.analysis.groups import measure_of
        from pushcen.checks import check_choice

        runs = [result.run for result in self.values()]
        groups = group(runs)
        panels = cross(runs, columns=self.worlds[1:]).panels() if self.worlds else None
        figures = figures_of(measure_of(groups), panels=panels)
        figure = figure or next(iter(figures))
        check_choice("figure", figure, tuple(figures))
        return figures[figure][1](groups)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self)})"

    def _repr_html_(self) -> str:
        from pushcen.analysis.report import as_image

        figure = self.plot()
        return self.table.to("html") + (as_image(figure, "the metric over pseudo-time") if figure else "")


def simulate(
    config: "Source" = "digits",
    *,
    task: "TaskFunction | str | None" = None,
    method: "Method | str | None" = None,
    folder: str | Path | None = None,
    observers: "Sequence[Observer]" = (),
    track: Sequence[str] = (),
    strict: bool = False,
    live: bool = False,
    **settings: Any,
) -> Result:
    """Simulate one world and return the outcome.

    `config` is a TOML file, a preset by its name, nested values or a World; `settings` change single values or
    sections. `task` is a function `(client, clients) -> Task`, or its name; `method` a name, or an object:
    `PushCen(clusters=16)`. A `folder` that holds the same run goes on with it; without one, the run
    gets a temporary folder, or in a notebook a new one in `runs/`, which it names. With `live`, its curve grows in the
    notebook's cell. A client whose training diverges does not end the run, unless `strict`.

    >>> result = simulate(clients=3, horizon=0.5, network={"loss": 0.1}, seed=1)
    >>> result.finished, list(result.frame["time"])
    (True, [0.5])
    """
    from pushcen.analysis import draw_accuracy
    from pushcen.notebook import live_curves, run_bar, run_folder
    from pushcen.runs import launch

    load, function = _loader(config, task, settings)
    chosen = load({} if method is None else {"method": _plain_method(method)})
    at = run_folder(folder, f"{chosen.task_name}-{chosen.method_name}")
    curve = [live_curves([at])] if live else []
    with run_bar(chosen.method_name) as bar:
        every = [*observers, bar, *curve]
        run = launch(chosen, at, task=function, observers=every, track=track, strict=strict, then=draw_accuracy)
    return Result(run)


def compare(
    methods: "Sequence[Method | str]" = (
        "pushcen",
        "pushcen-lean",
        "async-dfedavg",
        "swift",
        "divshare",
        "independent",
    ),
    config: "Source" = "digits",
    *,
    task: "TaskFunction | str | None" = None,
    folder: str | Path | None = None,
    observers: "Sequence[Observer]" = (),
    track: Sequence[str] = (),
    strict: bool = False,
    seeds: int = 1,
    over: Mapping[str, Sequence[Any]] | None = None,
    jobs: int = 1,
    live: bool = False,
    **settings: Any,
) -> Comparison:
    """Run several methods in the same worlds: same data, same join times, same first weights.

    Each runs with so many `seeds`, at every point of `over`: `{"data.alpha": [0.1, 1.0]}`; then results go by the names
    of their folders. `jobs` runs at a time have a process each, which imports the task and the methods by name. What is
    finished in `folder` is not run again. A run that fails stops no other; at the end it is an error. `live` is as
    `simulate` has it.

    >>> results = compare(["pushcen", "independent"], clients=3, horizon=0.5)
    >>> list(results), results["independent"].summary["traffic"]["bytes_sent"]
    (['pushcen', 'independent'], 0)
    """
    from pushcen.analysis import draw_accuracy
    from pushcen.checks import check_count
    from pushcen.config import flat
    from pushcen.errors import RunError
    from pushcen.notebook import live_curves, run_bar, run_folder, runs_bar
    from pushcen.runs import carry_out, method_settings, one_by_one, place, plan_comparison

    check_count("jobs", jobs, 1)
    load, function = _loader(config, task, settings)
    own = [flat({"method": _plain_method(method)}) for method in methods]
    named = method_settings([one["method.name"] for one in own], {})
    for one in own:
        named[one["method.name"]] |= one
    if jobs > 1:
        _check_importable(function, list(named), observers)
    planned = plan_comparison(load, named, over, seeds)
    placed = place(planned, run_folder(folder, f"compare-{planned[0].config.task_name}"))
    curve = [live_curves([job.folder for job in placed])] if live else []
    how: dict[str, Any] = {"track": track, "strict": strict, "then": draw_accuracy}
    if jobs == 1:
        every = [*observers, *curve]
        reports = one_by_one(placed, task=function, observers=every, watch=lambda job: run_bar(job.name), **how)
    else:
        with runs_bar(len(placed)) as bar:

            def tell(report: "Report") -> None:
                bar(report)
                for one in curve:
                    (one.ended if report.done else one.evaluated)({})

            reports = carry_out(placed, at_once=jobs, tell=tell, **how)
    if failed := [report for report in reports if not report.done]:
        said = "\n".join(f"{report.job.name}: {report.error}" for report in failed)
        raise RunError(f"{len(failed)} of {len(reports)} runs failed:\n{said}") from failed[0].cause
    done = [Result(report.run) for report in reports]
    if seeds == 1 and not over:
        return Comparison(dict(zip(named, done, strict=True)))
    return Comparison({run.name: one for run, one in zip(planned, done, strict=True)}, ("seed", *(over or {})))


def _check_importable(task: "TaskFunction | None", methods: Sequence[str], observers: "Sequence[Observer]") -> None:
    """Refuse what another process cannot have: objects of this one."""
    from pushcen.errors import OptionError, PushcenError
    from pushcen.locate import locate

    if observers:
        raise OptionError("observers: are objects of this process, and with jobs > 1 runs are in others; use track")
    if main := [name for name in methods if name.startswith("__main__:")]:
        raise OptionError(f"methods = {main[0]!r}: with jobs > 1 it must be in a module, which other processes import")
    if task is None:
        return
    name = _task_name(task)
    try:
        found = None if name.startswith("__main__:") else locate(name, "task")
    except PushcenError:
        found = None
    if found is not task:
        raise OptionError(f"task = {name!r}: with jobs > 1 it must be in a module, which other processes import")


def _task_name(task: "TaskFunction") -> str:
    return f"{task.__module__}:{getattr(task, '__qualname__', type(task).__qualname__)}"


def _loader(
    config: "Source", task: "TaskFunction | str | None", settings: Mapping[str, Any]
) -> "tuple[Callable[[dict[str, Any]], Config], TaskFunction | None]":
    from pushcen.config import flat, load_config, plain_world
    from pushcen.simulation import World

    source = plain_world(config) if isinstance(config, World) else config
    changed = flat(settings)
    if isinstance(task, str):
        changed["task.function"] = task
    elif task is not None:
        changed["task.function"] = _task_name(task)
    function = None if isinstance(task, str) else task
    return lambda more: load_config(source, changed | flat(more)), function


def _plain_method(method: "Method | str") -> dict[str, Any]:
    from pushcen.config import plain_method

    return {"name": method} if isinstance(method, str) else plain_method(method)
