"""Many runs in one folder: methods in the same worlds, or the points of a sweep, each with the same seeds."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pushcen.checks import check_count
from pushcen.config import Config, Text
from pushcen.errors import ConfigError, OptionError
from pushcen.folder import CONFIG
from pushcen.methods import method_named
from pushcen.runs.campaign import RunJob
from pushcen.runs.launch import check_same
from pushcen.runs.run import Run
from pushcen.runs.store import RunStore, folder_name

Settings = dict[str, Any]
"""Values by the full keys of a config: `data.alpha`."""
Load = Callable[[Settings], Config]
"""Builds a config with some settings on top."""
Axes = Mapping[str, Sequence[Any]]
"""The values that some keys take, one after the other."""


_LONGEST = 240  # bytes of a folder's name; file systems allow 255


@dataclass(frozen=True)
class PlannedRun:
    """One run of many: its folder inside that of all, its point, and what it sets on top of the others' config."""

    name: str
    point: Settings
    settings: Settings
    config: Config


def plan_comparison(
    load: Load, methods: Mapping[str, Settings], over: Axes | None = None, seeds: int = 1
) -> list[PlannedRun]:
    """Return a run of each method at every point with every seed, seed by seed: the first ones make a whole table.

    A seed means the same world for all methods at a point. With one world, a folder is called by its method.

    >>> from pushcen.config import load_config
    >>> methods, over = method_settings(["pushcen", "swift"], {}), {"data.alpha": [0.1, 1.0]}
    >>> planned = plan_comparison(lambda more: load_config("digits", more), methods, over, seeds=2)
    >>> [run.name for run in planned][:3]
    ['data.alpha=0.1/pushcen-seed-0', 'data.alpha=0.1/swift-seed-0', 'data.alpha=1.0/pushcen-seed-0']
    """
    over = over or {}
    for key in over:
        if key in ("method", "method.name") or key.startswith("methods."):
            raise OptionError(f"--over {key}=...: points are the same for all methods; --methods says which there are")
        if key.startswith("method.") and (without := [n for n, own in methods.items() if not _has(own, key)]):
            raise OptionError(f"--over {key}=...: {without[0]} has no such option; points are the same for all methods")

    def name(label: str, method: str, seed: int) -> str:
        single = seeds == 1 and not over
        return "/".join(filter(None, [label, method if single else f"{method}-seed-{seed}"]))

    return _checked(_every(load, methods, over, seeds, name))


def plan_sweep(load: Load, over: Axes, seeds: int) -> list[PlannedRun]:
    """Return the runs of a sweep: every combination of the values of `over`, with so many seeds.

    >>> from pushcen.config import load_config
    >>> over = {"method.clusters": [8, 16], "network.loss": [0, 0.1]}
    >>> planned = plan_sweep(lambda more: load_config("digits", more), over, 2)
    >>> [run.name for run in planned][:2]
    ['method.clusters=8,network.loss=0/seed-0', 'method.clusters=8,network.loss=0.1/seed-0']
    """
    return _checked(
        _every(load, {"": {}}, over, seeds, lambda label, _, seed: f"{label or 'as_it_stands'}/seed-{seed}")
    )


def method_settings(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Settings]:
    """Return what each method sets: its name, and the options of `given` that it has; one that none has is an error.

    >>> method_settings(["pushcen", "swift"], {"method.clusters": 8})
    {'pushcen': {'method.name': 'pushcen', 'method.clusters': 8}, 'swift': {'method.name': 'swift'}}
    """
    if not names:
        raise OptionError("methods: at least one is needed")
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise OptionError(f"methods = {twice[0]!r}: is named twice")
    found: dict[str, Settings] = {name: {"method.name": name} for name in names}
    for key, value in given.items():
        having = [own for own in found.values() if _has(own, key)]
        if not having and key != "method.name":
            known = sorted({field.name for name in names for field in fields(method_named(name))})
            raise ConfigError(f"{key} = {str(value)!r}: none of the methods has it; they have {known}")
        for own in having:
            own[key] = value
    return found


def parse_axes(texts: Iterable[str]) -> dict[str, list[Text]]:
    """Read `--over KEY=A,B,...` flags. What a value means is decided by its option's type.

    >>> parse_axes(["data.alpha=0.1, 1.0"])
    {'data.alpha': ['0.1', '1.0']}
    """
    found: dict[str, list[Text]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        split = [Text(value.strip()) for value in values.split(",")]
        if not equals or not key.strip() or not all(split):
            raise ConfigError(f"--over {text}: must be KEY=VALUE,VALUE,..., such as method.clusters=8,16,32")
        if key.strip() in found:
            raise ConfigError(f"--over {text}: {key.strip()} is given twice; put all its values into one")
        found[key.strip()] = split
    return found


def point_label(point: Settings) -> str:
    """Return a point as text.

    >>> point_label({"data.alpha": 0.1, "network.loss": 0})
    'data.alpha=0.1, network.loss=0'
    """
    return ", ".join(f"{key}={value}" for key, value in point.items())


def base_of(point: Settings, axes: Axes) -> Settings:
    """Return the point of a sweep that another is compared with: the first choice of the method's options, same world.

    Where no option of the method is swept, it is the first of all.

    >>> base_of({"method.clusters": 16, "data.alpha": 1.0}, {"method.clusters": [8, 16], "data.alpha": [0.1, 1.0]})
    {'method.clusters': 8, 'data.alpha': 1.0}
    >>> base_of({"data.alpha": 1.0}, {"data.alpha": [0.1, 1.0]})
    {'data.alpha': 0.1}
    """
    own = [key for key in axes if key.startswith("method")]
    return point | {key: axes[key][0] for key in own or axes}


def place(planned: Sequence[PlannedRun], folder: Path) -> list[RunJob]:
    """Return where in a folder each run is, under whatever name, or is to be; another run in its place is an error."""
    store, jobs = RunStore(folder), []
    taken = {folder / run.name for run in planned}
    for run in planned:
        at, there = folder / run.name, store.where(run.config)
        if (at / CONFIG).is_file():
            check_same(Run.open(at), run.config)
        elif there is not None and there not in taken:
            at = there
            taken.add(at)
        jobs.append(RunJob(run.name, run.config, at))
    return jobs


def _has(own: Settings, key: str) -> bool:
    options = {f"method.{field.name}" for field in fields(method_named(own["method.name"]))}
    return key in options


def _every(
    load: Load, methods: Mapping[str, Settings], over: Axes, seeds: int, name: Callable[[str, str, int], str]
) -> list[PlannedRun]:
    """Return a run of each method at each point with each seed; `name` is given point, method and seed."""
    check_count("seeds", seeds, 1)
    if "seed" in over:
        raise OptionError(
            "--over seed=...: every point has the same seeds; say how many with --seeds, the first with --seed"
        )
    for key, values in over.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise OptionError(f"over: {key} = {values!r}: must be a list of values")
    points = [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]
    first = load(next(iter(methods.values()))).seed
    found = []
    for seed, point, (method, own) in itertools.product(range(first, first + seeds), points, methods.items()):
        settings = own | point | ({"seed": seed} if seeds > 1 else {})
        called = name(folder_name(point_label(point)), folder_name(method), seed)
        found.append(PlannedRun(called, point, settings, load(settings)))
    return found


def _checked(planned: list[PlannedRun]) -> list[PlannedRun]:
    """Refuse two runs that are the same, or would have the same folder."""
    configs: dict[str, PlannedRun] = {}
    names: dict[str, PlannedRun] = {}
    for run in planned:
        if (same := configs.setdefault(repr(run.config), run)) is not run:
            raise OptionError(f"{run.name} is the same run as {same.name}: leave one of them out")
        if names.setdefault(run.name, run) is not run:
            raise OptionError(f"{run.name}: two runs would have this folder; their values differ too little in writing")
        if long := [part for part in run.name.split("/") if len(part.encode()) > _LONGEST]:
            raise OptionError(f"{long[0]:.80}...: is too long for the name of a folder; sweep fewer or shorter values")
    return planned
