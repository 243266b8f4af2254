"""The simulated world: each section is a small, checked class. `World` holds them all."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushcen.simulation.world.checks import check_choice, check_count, check_number
from pushcen.simulation.world.compute import Compute
from pushcen.simulation.world.looking import METERS, Evaluation, Meters
from pushcen.simulation.world.neighbours import Neighbours
from pushcen.simulation.world.network import Network
from pushcen.simulation.world.participation import Participation
from pushcen.simulation.world.running import Checkpoint, Executor

if TYPE_CHECKING:
    from pushcen.learning import Training
    from pushcen.methods import Method


@dataclass(frozen=True)
class World:
    """A whole simulated world: who trains what how, when, and who hears of it. The same world, the same bytes.

    `horizon` is the pseudo-time at which it ends (T in the paper). `collect` says when a client takes what has arrived:
    at the `end` of its compute time, just before it trains and pushes (the paper), or at the `start` of it.
    """

    method: "Method"
    training: "Training"
    clients: int = 20
    seed: int = 0
    horizon: float = 20.0
    collect: str = "end"
    compute: Compute = field(default_factory=Compute)
    network: Network = field(default_factory=Network)
    participation: Participation = field(default_factory=Participation)
    neighbours: Neighbours = field(default_factory=Neighbours)
    evaluation: Evaluation = field(default_factory=Evaluation)
    meters: Meters = field(default_factory=Meters)
    executor: Executor = field(default_factory=Executor)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)

    def __post_init__(self) -> None:
        check_count("clients", self.clients, 1)
        check_count("seed", self.seed, most=2**63 - 1)
        check_number("horizon", self.horizon)
        check_choice("collect", self.collect, ("end", "start"))


__all__ = [
    "METERS",
    "Checkpoint",
    "Compute",
    "Evaluation",
    "Executor",
    "Meters",
    "Neighbours",
    "Network",
    "Participation",
    "World",
]
