"""Simulations from Python: `pushcen.simulate(...)` and `pushcen.compare(...)`. Imports torch only when called."""

import tempfile
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
    from pushcen.runs import Run
    from pushcen.simulation import Observer, World

    Source = str | Path | Mapping[str, Any] | World


@dataclass(frozen=True)
class Result:
    """The outcome of one run. In a notebook it shows its table."""

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

    def _repr_html_(self) -> str:
        return self.table.to("html")


@dataclass(frozen=True)
class Comparison(Mapping[str, Result]):
    """Results by method, all of the same world."""

    results: dict[str, Result]

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def frame(self) -> "pd.DataFrame":
        """All rows of all methods, with a column `method`."""
        import pandas as pd

        return pd.concat([result.frame.assign(method=name) for name, result in self.items()], ignore_index=True)

    @property
    def table(self) -> "Table":
        """One row for each method."""
        from pushcen.analysis import comparison, group

        return comparison(group([result.run for result in self.values()]))

    def plot(self, figure: str = "") -> "Figure | None":
        """Draw accuracy, delayed, accuracy_bytes, bytes_per_push or mass; None where there is nothing to draw.

        Runs that are measured by something else have its name in place of accuracy; it is drawn if nothing is named.
        """
        from pushcen.analysis import group
        from pushcen.analysis.figures import figures_of
        from pushcen.analysis.groups import measure_of
        from pushcen.checks import check_choice

        groups = group([result.run for result in self.values()])
        figures = figures_of(measure_of(groups))
        figure = figure or next(iter(figures))
        check_choice("figure", figure, tuple(figures))
        return figures[figure][1](groups)

    def _repr_html_(self) -> str:
        return self.table.to("html")


def simulate(
    config: "Source" = "digits",
    *,
    task: "TaskFunction | str | None" = None,
    method: "Method | str | None" = None,
    folder: str | Path | None = None,
    observers: "Sequence[Observer]" = (),
    track: Sequence[str] = (),
    strict: bool = False,
    **settings: Any,
) -> Result:
    """Simulate one world and return the outcome.

    `config` is a TOML file, a preset by its name, nested values or a World; `settings` change single values or
    sections. `task` is a function `(client, clients) -> Task`, or its name; `method` a name, or an object:
    `PushCen(clusters=16)`. A `folder` that holds the same run goes on with it; without one, the run
    gets a temporary folder. A client whose training diverges does not end the run, unless `strict`.

    >>> result = simulate(clients=3, horizon=0.5, network={"loss": 0.1}, seed=1)
    >>> result.finished, list(result.frame["time"])
    (True, [0.5])
    """
    from pushcen.analysis import draw_accuracy
    from pushcen.runs import launch

    load, function = _loader(config, task, settings)
    chosen = load({} if method is None else {"method": _plain_method(method)})
    at = _folder(folder)
    return Result(
        launch(chosen, at, task=function, observers=observers, track=track, strict=strict, then=draw_accuracy)
    )


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
    **settings: Any,
) -> Comparison:
    """Run several methods in the same world: same data, same join times, same first weights.

    What is finished in `folder` is not run again.

    >>> results = compare(["pushcen", "independent"], clients=3, horizon=0.5)
    >>> list(results), results["independent"].summary["traffic"]["bytes_sent"]
    (['pushcen', 'independent'], 0)
    """
    from pushcen.analysis import draw_accuracy
    from pushcen.runs import folder_name, launch

    load, function = _loader(config, task, settings)
    where, results = _folder(folder), {}
    for method in methods:
        chosen = load({"method": _plain_method(method)})
        at = where / folder_name(chosen.method_name)
        run = launch(chosen, at, task=function, observers=observers, track=track, strict=strict, then=draw_accuracy)
        results[chosen.method_name] = Result(run)
    return Comparison(results)


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
        changed["task.function"] = f"{task.__module__}:{getattr(task, '__qualname__', type(task).__qualname__)}"
    function = None if isinstance(task, str) else task
    return lambda more: load_config(source, changed | flat(more)), function


def _plain_method(method: "Method | str") -> dict[str, Any]:
    from pushcen.config import plain_method

    return {"name": method} if isinstance(method, str) else plain_method(method)


def _folder(folder: str | Path | None) -> Path:
    return Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="pushcen-"))
