"""Many clients in pseudo-time, on an event queue: no rounds, and the same result on one thread or on a cluster."""

from pushcen.simulation.observer import Observer, Quiet
from pushcen.simulation.options import (
    METERS,
    CheckpointOptions,
    ComputeOptions,
    EvaluationOptions,
    ExecutorOptions,
    MeterOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    World,
)
from pushcen.simulation.run import Summary, simulate_world

__all__ = [
    "METERS",
    "CheckpointOptions",
    "ComputeOptions",
    "EvaluationOptions",
    "ExecutorOptions",
    "MeterOptions",
    "NeighbourOptions",
    "NetworkOptions",
    "Observer",
    "ParticipationOptions",
    "Quiet",
    "Summary",
    "World",
    "simulate_world",
]
