"""The config of both worlds: the simulated one, what clients learn, and how real peers behave."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pushcen.checks import check_choice
from pushcen.config.build import Builder, Registry
from pushcen.config.quantities import in_numbers
from pushcen.errors import ConfigError, OptionError, PushcenError, called, renamed
from pushcen.learning import TaskFunction, load_task, metric_names
from pushcen.methods import Method, PushCen, method_name, method_named
from pushcen.runtime.options import RuntimeOptions
from pushcen.simulation import World
from pushcen.simulation.options import ONLY_REAL, flat
from pushcen.simulation.options.identity import Identity
from pushcen.simulation.worlds.own_graphs import is_own
from pushcen.tasks import MODELS, DataOptions, ImageTask, TableTask


@dataclass(frozen=True)
class TaskOptions:
    """The section `task`: a function of your own, or else a model by name on the data of the section `data`."""

    function: str = ""
    """`module:function` or `file.py:function`, which takes client and clients and returns a Task."""
    model: str = ""
    """cnn, lenet, resnet18 or, for tables, mlp [as usual for the data]."""
    weights: str = ""
    """A file with the weights that the model starts from."""
    metrics: str | None = None
    """What it is measured by, by commas: accuracy, f1, auroc, ..., or module:Class [as usual for the data]."""

    def __post_init__(self) -> None:
        if self.metrics is not None:
            object.__setattr__(self, "metrics", ",".join(metric_names(self.metrics)) or None)
        if self.model:
            check_choice("model", self.model, MODELS)


@dataclass(frozen=True)
class Config(World):
    """Everything that decides what a run does. It is a `World`, and has the task beside it.

    >>> config = Config.of({"clients": 5, "method": "swift-random", "network": {"loss": 0.1}})
    >>> config.clients, config.method, config.network.loss
    (5, SwiftRandom(receivers=10, every=1), 0.1)
    """

    method: Method = field(default_factory=PushCen)
    task: TaskOptions = TaskOptions()
    data: DataOptions = field(default_factory=DataOptions)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions, metadata=ONLY_REAL)
    files: dict[str, str] = field(default_factory=dict)
    """Fingerprints of the files and functions that options name; written by a run, checked when it is read again."""

    @classmethod
    def of(cls, values: Mapping[str, Any], *, real: bool = False) -> "Config":
        """Return the config of plain, nested values, or raise a ConfigError that lists all mistakes.

        With `real` it is for peers of a real network, and the method need not fit the simulated world.

        A section `methods.NAME` has options for a method wherever it is chosen; `method` has the last word. A method
        that needs a fixed graph gets one, unless `neighbours.kind` says something else. Where rows of a table have
        owners, there are as many clients, unless `clients` says something else.
        """
        values, problems = in_numbers(cls, _with_graph(_with_method(values)))
        try:
            config = BUILDER.build(cls, values)
        except ConfigError as error:
            raise ConfigError("\n".join([*problems, str(error)])) from None
        if problems:
            raise ConfigError("\n".join(problems))
        if config.method.needs_graph and "kind" not in values.get("neighbours", {}):
            config = dataclasses.replace(config, neighbours=dataclasses.replace(config.neighbours, kind="graph"))
        if not real:
            config.check_method()
        if config.task.function:
            given = flat({name: values.get(name, {}) for name in ("task", "data")})
            if unread := [key for key in given if key != "task.function"]:
                brings = "its metrics, by Task(metric=...)" if unread == ["task.metrics"] else "model and data"
                raise ConfigError(
                    f"{unread[0]} = {given[unread[0]]!r}: is not read where task.function = "
                    f"{config.task.function!r} brings {brings}; leave one of them out"
                )
        else:
            task = config.data_task()
            config = dataclasses.replace(config, task=dataclasses.replace(config.task, model=task.model))
            if isinstance(task, TableTask) and config.data.owner and "clients" not in values:
                config = dataclasses.replace(config, clients=task.owners())
        config = dataclasses.replace(config, files=config._checked_files())
        if not real:
            config.check_graph()
        return config

    def plain(self) -> dict[str, Any]:
        """Return the config as plain values, from which `of` builds the same."""
        values = BUILDER.plain(self)
        if self.task.function:
            values["task"] = {"function": self.task.function}
            del values["data"]
        else:
            del values["task"]["function"]
        if not self.files:
            del values["files"]
        plain_first = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
        return plain_first | values

    @classmethod
    def identity_of(cls, values: Mapping[str, Any], *, real: bool = False) -> Identity:
        """Return the identity of a config in a file; where a function is the task, `data` does not count.

        >>> config = Config.of({"clients": 5, "runtime": {"patience": 1.0}})
        >>> Config.identity_of(config.plain()) == config.identity() == Config.of({"clients": 5}).identity()
        True
        """
        found = super().identity_of(values, real=real)
        unread = ("task.model", "task.weights", "task.metrics", "data.") if found["task.function"] else ()
        return {key: value for key, value in found.items() if not key.startswith(unread)}

    def _checked_files(self) -> dict[str, str]:
        """Return the fingerprints of today, or refuse files that are not those that were meant."""
        try:
            found = self.fingerprints()
        except OptionError as error:
            raise ConfigError(str(error)) from error
        for key, was in self.files.items():
            if found.get(key) != was:
                raise ConfigError(
                    f"files.{key} = {was!r}: what {key} names is {found.get(key)!r} by now: bring the file back as it "
                    f"was, or leave files.{key} out, for another run"
                )
        return found

    def task_function(self) -> TaskFunction:
        """Return the function that makes each client's task."""
        if self.task.function:
            with called(task="task.function"):
                return load_task(self.task.function)
        return self.data_task()

    def data_task(self) -> ImageTask | TableTask:
        """Return the task of the sections `task` and `data`, where there is no function."""
        kind = TableTask if self.data.is_table else ImageTask
        with called(model="task.model"):
            return kind(self.data, self.task.model, self.task.weights, self.seed, self.task.metrics or "")

    @property
    def method_name(self) -> str:
        """The name by which its method is found."""
        return method_name(type(self.method))

    @property
    def task_name(self) -> str:
        """A short name of the task."""
        return self.task.function.rpartition(":")[2] or self.data.source.rstrip("/").rpartition("/")[2]


def _with_method(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with `methods.NAME` in `method`, if NAME is chosen; all of `methods` is checked."""
    found = dict(values)
    by_name = found.pop("methods", {})
    if not isinstance(by_name, Mapping):
        raise ConfigError(f"methods = {by_name!r}: must be a section, with a section for each method")
    for name, options in by_name.items():
        try:
            kind = method_named(name)
        except PushcenError as error:
            raise ConfigError(renamed(str(error), {"name": "methods", "method.name": "methods"})) from None
        BUILDER.build(kind, options, f"methods.{name}.")
    method = found.get("method", {})
    method = {"name": method} if isinstance(method, str) else method
    if isinstance(method, Mapping):
        name = method.get("name", PushCen.name)
        found["method"] = {"name": name, **by_name.get(name, {}), **method}
    return found


def _with_graph(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with `neighbours.kind = "graph"` where a graph of one's own is named, and no kind."""
    section = values.get("neighbours")
    if not isinstance(section, Mapping) or "kind" in section or not is_own(str(section.get("graph", ""))):
        return values
    return values | {"neighbours": {**section, "kind": "graph"}}


def plain_world(world: World) -> dict[str, Any]:
    """Return a world as a config has it; a config as it would be written.

    >>> plain_world(World(PushCen(clusters=8), clients=3))["method"]["clusters"]
    8
    """
    return world.plain() if isinstance(world, Config) else BUILDER.plain(world)


def plain_method(method: Method) -> dict[str, Any]:
    """Return a method as the section `method` has it.

    >>> plain_method(PushCen(clusters=8))["clusters"]
    8
    """
    return BUILDER.plain(method)


BUILDER = Builder({Method: Registry(method_named, method_name)})
