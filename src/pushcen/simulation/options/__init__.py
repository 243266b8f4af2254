"""The simulated world: each section is a small, checked class. `World` holds them all."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pushcen.checks import check_choice, check_count, check_number
from pushcen.learning import TrainingOptions
from pushcen.methods import Method, PushCen, method_loaded, method_name
from pushcen.simulation.options.clients import ComputeOptions, ParticipationOptions
from pushcen.simulation.options.identity import CARRIED_OUT, ONLY_REAL, Identity, differences, flat, identity_of
from pushcen.simulation.options.needs import check_needs
from pushcen.simulation.options.network import NeighbourOptions, NetworkOptions
from pushcen.simulation.options.running import CheckpointOptions, EvaluationOptions, ExecutorOptions, MeterOptions


@dataclass(frozen=True)
class World:
    """A whole simulated world: who trains what how, when, and who hears of it. The same world, the same bytes.

    `horizon` is the pseudo-time at which it ends (T in the paper). `collect` says when a client takes what has arrived:
    at the `end` of its compute time, just before it trains and pushes (the paper), or at the `start` of it.
    """

    method: Method
    training: TrainingOptions = field(default_factory=TrainingOptions)
    clients: int = 20
    seed: int = 0
    horizon: float = 20.0
    collect: str = "end"
    compute: ComputeOptions = field(default_factory=ComputeOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    participation: ParticipationOptions = field(default_factory=ParticipationOptions)
    neighbours: NeighbourOptions = field(default_factory=NeighbourOptions)
    evaluation: EvaluationOptions = field(default_factory=EvaluationOptions)
    meters: MeterOptions = field(default_factory=MeterOptions)
    executor: ExecutorOptions = field(default_factory=ExecutorOptions, metadata=CARRIED_OUT)
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions, metadata=CARRIED_OUT)

    def __post_init__(self) -> None:
        check_count("clients", self.clients, 1)
        check_count("seed", self.seed, most=2**63 - 1)
        check_number("horizon", self.horizon)
        check_choice("collect", self.collect, ("end", "start"))

    def check_method(self) -> None:
        """Refuse a method that cannot live in this world, by the setting that would have to change."""
        check_needs(self.method, self.neighbours, self.network, self.participation)

    def identity(self) -> Identity:
        """Return every option that its results depend on: with equal identities, two runs are the same run.

        >>> from pushcen.methods import PushCen
        >>> one, other = World(PushCen()), World(PushCen(), executor=ExecutorOptions(workers=1))
        >>> one.identity() == other.identity(), one.identity()["method.name"], one.identity()["network.loss"]
        (True, 'pushcen', 0.0)
        """
        values = asdict(self)
        values["method"]["name"] = method_name(type(self.method))
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
    "World",
    "differences",
    "flat",
]
