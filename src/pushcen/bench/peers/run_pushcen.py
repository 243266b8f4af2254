"""pushcen's simulator: each client pushes its model to ten others, averages what has come, and trains."""

import sys

from work import BATCH, CORES, IMAGES, LABELS, RATE, lenet, report

from pushcen.learning import Task, TrainingOptions
from pushcen.methods import method_named
from pushcen.simulation import ComputeOptions, EvaluationOptions, ExecutorOptions, World, simulate_world

clients, rounds, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def task(client: int, clients: int) -> Task:  # noqa: ARG001
    """Return a client's model and data."""
    return Task(lenet(), (IMAGES, LABELS))


def simulate(rounds: int) -> dict:
    """Simulate so many updates of every client; return the summary."""
    world = World(
        method_named(method)(),
        TrainingOptions(batch=BATCH, optimiser="sgd", lr=RATE),
        clients=clients,
        horizon=rounds + 0.5,
        compute=ComputeOptions("constant"),
        evaluation=EvaluationOptions(every=rounds + 0.5),
        executor=ExecutorOptions(workers=CORES),
    )
    return simulate_world(world, task)


simulate(1)  # warm up
summary = simulate(rounds)
report(summary["steps"], summary["times"]["run"], "pushcen")
