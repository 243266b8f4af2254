"""Many clients in pseudo-time, on an event queue: no rounds, and the same result on one thread or on a cluster."""

from pushcen.simulation.jobs import Job, row_of, set_to
from pushcen.simulation.meters import METERS, Meter, Reading
from pushcen.simulation.observer import Observer, Quiet
from pushcen.simulation.options import (
    CheckpointOptions,
    ComputeOptions,
    EvaluationOptions,
    ExecutorOptions,
    MeterOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    RecordOptions,
    StalenessOptions,
    World,
)
from pushcen.simulation.run import Summary, simulate_world

__all__ = [
    "METERS",
    "CheckpointOptions",
    "ComputeOptions",
    "EvaluationOptions",
    "ExecutorOptions",
    "Job",
    "Meter",
    "MeterOptions",
    "NeighbourOptions",
    "NetworkOptions",
    "Observer",
    "ParticipationOptions",
    "Quiet",
    "Reading",
    "RecordOptions",
    "StalenessOptions",
    "Summary",
    "World",
    "row_of",
    "set_to",
    "simulate_world",
]
