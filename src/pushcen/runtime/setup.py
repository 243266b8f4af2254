"""What a peer is started with, and which of that cannot be."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.errors import OptionError
from pushcen.learning import SparsityOptions, TaskFunction, TrainingOptions
from pushcen.methods import Method, PushCen, check_taken
from pushcen.runtime.changes import check_code
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.security.identity import Identity

if TYPE_CHECKING:
    from pushcen.config import Config, NeighbourOptions, StalenessOptions


@dataclass
class Setup:
    """What a peer is started with."""

    identity: Identity
    task: TaskFunction
    state: Path
    listen: str
    join: Sequence[str] = ()
    advertise: str = ""
    """Where others reach it, if not where it listens."""
    method: Method = field(default_factory=PushCen)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    seed: int = 0
    client: int = 0
    clients: int = 1
    metrics: str = ""
    """HOST:PORT for Prometheus."""
    certs: Path | None = None
    moved: bool = False
    """Take a copied state folder for the original."""
    grace: float = 2.0
    """How long to wait for a compute event that is to be given up."""
    proxy: str = ""
    """HOST:PORT of an HTTP proxy through which all calls go out."""
    neighbours: "NeighbourOptions | None" = None
    """Which of those it knows it pushes to: `policy`, `explore` and `validation` of it."""
    staleness: "StalenessOptions | None" = None
    """What becomes of models that have waited for long; its times are in seconds."""
    sparsity: SparsityOptions | None = None
    shown: "Callable[[Callable[[int, int], bytes]], contextlib.AbstractContextManager[Any]] | None" = None
    """Shows how this peer is, within a context, by a view that may be asked for from any thread."""
    configure: "Callable[[Mapping[str, str]], Setup] | None" = None
    """Returns the same with settings that the authority has changed for all; without it none can be taken over."""


def peer_config(task: str, settings: Iterable[str] = (), changes: Mapping[str, str] | None = None) -> "Config":
    """Read a config: `module:function` (or `file.py:function`) is a task, all else a preset or a TOML file.

    Without a task the settings say all that is not as usual. `changes` are the authority's, for all peers. What a real
    peer cannot do is refused.

    >>> peer_config("digits", ["method.clusters=8", "runtime.patience=1.0"]).runtime.patience
    1.0
    """
    from pushcen.config import load_config, parse_settings

    given, source = parse_settings(settings), {"task": {"function": task}} if ":" in task else task or {}
    config = load_config(source, given, real=True)
    if changes:
        check_code(config.plain(), changes)
        given |= parse_settings(f"{key}={value}" for key, value in changes.items())
        config = load_config(source, given, real=True)
    check_options(config)
    return config


def check_options(setup: "Setup | Config") -> None:
    """Refuse methods that need a fixed graph, and options of the simulator for which a real peer knows too little."""
    if setup.method.needs_graph:
        raise OptionError(
            f"method.name = {type(setup.method).name!r}: needs a fixed graph, which a real network has not"
        )
    for name, given in setup.training.per_client.given().items():
        raise OptionError(
            f"training.per_client.{name} = {given!r}: is the simulator's; a peer has a training.{name} of its own"
        )
    policy = "random" if setup.neighbours is None else setup.neighbours.policy
    if policy == "priority":
        raise OptionError(
            "neighbours.policy = 'priority': is the simulator's; peers do not tell each other how their labels are "
            "distributed; must be random or bandit"
        )
    if setup.staleness is not None and setup.staleness.ahead:
        raise OptionError(
            f"staleness.ahead = {setup.staleness.ahead!r}: is the simulator's; peers do not tell each other how many "
            "compute events they have had, and wait for nobody; must be 0"
        )
    by_age = None if setup.staleness is None else setup.staleness.given
    check_taken(setup.method, policy, by_age, setup.sparsity)
