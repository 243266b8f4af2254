"""The simulated world: each section is a small, checked class. `World` holds them all."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from pushcen.checks import check_choice, check_count, check_number
from pushcen.errors import OptionError
from pushcen.learning import SparsityOptions, TrainingOptions
from pushcen.methods import Method, PushCen, check_taken, method_loaded, method_name
from pushcen.simulation.options.clients import ComputeOptions, ParticipationOptions
from pushcen.simulation.options.identity import CARRIED_OUT, ONLY_REAL, Identity, differences, flat, identity_of
from pushcen.simulation.options.needs import check_graph, check_needs
from pushcen.simulation.options.network import NeighbourOptions, NetworkOptions
from pushcen.simulation.options.running import (
    CheckpointOptions,
    EvaluationOptions,
    ExecutorOptions,
    MeterOptions,
    RecordOptions,
)
from pushcen.simulation.options.staleness import StalenessOptions
from pushcen.simulation.worlds.lines import Lines
from pushcen.simulation.worlds.own_graphs import TimedGraph, graph_fingerprint, is_own
from pushcen.simulation.worlds.sources import fingerprint
from pushcen.simulation.worlds.speeds import LOGNORMAL, is_file
from pushcen.simulation.worlds.traces import Availability, read_trace
from pushcen.units import NEEDS_TIME_UNIT, PseudoTime, time_unit_of

_LOOKED_AT = 10_000  # clients up to which the graph is looked at before a run begins


@dataclass(frozen=True)
class World:
    """A whole simulated world: who trains what how, when, and who hears of it. The same world, the same bytes.

    `horizon` is the pseudo-time at which it ends (T in the paper). `collect` says when a client takes what has arrived:
    at the `end` of its compute time, just before it trains and pushes (the paper), or at the `start` of it. `time_unit`
    says how long a unit of pseudo-time is ("1 min"), where options have units or files have seconds.
    """

    method: Method
    training: TrainingOptions = field(default_factory=TrainingOptions)
    clients: int = 20
    seed: int = 0
    horizon: PseudoTime = 20.0
    collect: str = "end"
    time_unit: str = ""
    compute: ComputeOptions = field(default_factory=ComputeOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    participation: ParticipationOptions = field(default_factory=ParticipationOptions)
    neighbours: NeighbourOptions = field(default_factory=NeighbourOptions)
    staleness: StalenessOptions = field(default_factory=StalenessOptions)
    sparsity: SparsityOptions = field(default_factory=SparsityOptions)
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    meters: MeterOptions = field(default_factory=MeterOptions)
    executor: ExecutorOptions = field(default_factory=ExecutorOptions, metadata=CARRIED_OUT)
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions, metadata=CARRIED_OUT)
    record: RecordOptions = field(default_factory=RecordOptions, metadata=CARRIED_OUT)

    def __post_init__(self) -> None:
        check_count("clients", self.clients, 1)
        check_count("seed", self.seed, most=2**63 - 1)
        check_number("horizon", self.horizon)
        check_choice("collect", self.collect, ("end", "start"))
        try:
            time_unit_of(self.time_unit)
        except OptionError as error:
            raise OptionError(f"time_unit = {error}") from None
        for key, value in self._in_seconds().items():
            if value and not self.time_unit:
                raise OptionError(f"{key} = {value!r}: {NEEDS_TIME_UNIT}")

    def _in_seconds(self) -> dict[str, str]:
        """Return the options that name files with seconds in them."""
        speeds = "" if self.network.speeds.startswith(LOGNORMAL) else self.network.speeds
        return {"participation.trace": self.participation.trace, "network.speeds": speeds}

    @property
    def seconds(self) -> Fraction | None:
        """How many seconds a unit of pseudo-time lasts; None if the world does not say.

        >>> World(PushCen(), time_unit="1 min").seconds
        Fraction(60, 1)
        """
        return time_unit_of(self.time_unit)

    def availability(self) -> list[Availability] | None:
        """Return when each client is there, as `participation.trace` says; None if there is none."""
        if not self.participation.trace or self.seconds is None:
            return None
        return read_trace(self.participation.trace, self.clients, self.seed, self.seconds, self.horizon)

    def lines(self) -> Lines:
        """Return how fast messages are between any two clients."""
        return Lines(self.network, self.clients, self.seed, self.seconds)

    def timed_graph(self) -> TimedGraph | None:
        """Return who may push to whom, at every moment; None if that is no graph."""
        return self.neighbours.timed_graph(self._names, self.seed, self.seconds, self.horizon)

    @property
    def _names(self) -> list[str]:
        return [str(client) for client in range(self.clients)]

    def fingerprints(self) -> dict[str, str]:
        """Return what tells the contents of the files and functions that it is made of, by the options that name them.

        >>> World(PushCen()).fingerprints()
        {}
        """
        speeds = {"compute.speeds": self.compute.speeds, "network.speeds": self.network.speeds}
        brought = {
            "participation.trace": self.participation.trace,
            **{key: value for key, value in speeds.items() if is_file(value)},
            "network.links": self.network.links,
        }
        found = {key: fingerprint(value, key) for key, value in brought.items() if value}
        graph = self.neighbours.graph
        return found | ({"neighbours.graph": graph_fingerprint(graph)} if is_own(graph) else {})

    def check_method(self) -> None:
        """Refuse a method that cannot live in this world, by the setting that would have to change."""
        check_needs(self.method, self.neighbours, self.network, self.participation)
        check_taken(self.method, self.neighbours.policy, self.staleness.given, self.sparsity)

    def check_graph(self) -> None:
        """Refuse a graph that cannot be, or on which the method cannot live."""
        if self.neighbours.kind != "graph" or self.clients > _LOOKED_AT:
            return
        with warnings.catch_warnings(action="ignore"):  # which are for a run that begins
            graph = self.timed_graph()
        check_graph(self.method, self.neighbours, self._names, None if graph is None else graph.fixed)

    def identity(self) -> Identity:
        """Return every option that its results depend on: with equal identities, two runs are the same run.

        What is in the files that options name counts, too.

        >>> from pushcen.methods import PushCen
        >>> one, other = World(PushCen()), World(PushCen(), executor=ExecutorOptions(workers=1))
        >>> one.identity() == other.identity(), one.identity()["method.name"], one.identity()["network.loss"]
        (True, 'pushcen', 0.0)
        """
        values = asdict(self)
        values["method"]["name"] = method_name(type(self.method))
        values["files"] = self.fingerprints()
        return self.identity_of(values)

    @classmethod
    def identity_of(cls, values: Mapping[str, Any], *, real: bool = False) -> Identity:
        """Return the identity of a world that was written down, perhaps by an earlier version; imports nothing.

        What it does not say counts as the default of today, where the option is known. `real` peers read options
        that the simulator does not, and are another world.
        """
        values = flat(values)
        name = values.pop("method", None) or values.get("method.name", PushCen.name)
        kind = method_loaded(name) if isinstance(name, str) else None
        found = identity_of(cls, values | {"method.name": name}, {"method": kind}, real=real)
        return found | {"world": "real"} if real else found


__all__ = [
    "CARRIED_OUT",
    "ONLY_REAL",
    "CheckpointOptions",
    "ComputeOptions",
    "EvaluationOptions",
    "ExecutorOptions",
    "MeterOptions",
    "NeighbourOptions",
    "NetworkOptions",
    "ParticipationOptions",
    "RecordOptions",
    "StalenessOptions",
    "World",
    "differences",
    "flat",
]
