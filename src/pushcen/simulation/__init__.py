"""Many clients in pseudo-time, on an event queue: no rounds, and the same result on one thread or on a cluster."""

from pushcen.simulation.observer import Observer, Quiet
from pushcen.simulation.run import Summary, simulate_world
from pushcen.simulation.world import (
    METERS,
    Checkpoint,
    Compute,
    Evaluation,
    Executor,
    Meters,
    Neighbours,
    Network,
    Participation,
    World,
)

__all__ = [
    "METERS",
    "Checkpoint",
    "Compute",
    "Evaluation",
    "Executor",
    "Meters",
    "Neighbours",
    "Network",
    "Observer",
    "Participation",
    "Quiet",
    "Summary",
    "World",
    "simulate_world",
]
