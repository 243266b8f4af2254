"""What a simulation costs beside the training it contains: time, memory, events; side by side in one run."""

import functools
import math
import multiprocessing
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from pushcen.bench.plain import Bare, Trivial, lenet_task
from pushcen.learning import Task, TrainingOptions
from pushcen.methods import PushCen
from pushcen.simulation import (
    ComputeOptions,
    EvaluationOptions,
    ExecutorOptions,
    MeterOptions,
    NeighbourOptions,
    World,
    simulate_world,
)

CLIENTS, STEPS, EVENTS = 100, 12, 2  # the paper's CIFAR-10: 100 clients, about 400 images each
TURNS = 5
MANY = 1000
SIZES = {1_000: 12.0, 10_000: 3.0}  # clients, and the pseudo-time for which they are simulated
_SPAWN = multiprocessing.get_context("spawn")


def run() -> dict[str, Any]:
    """Measure everything. docs/simulation.md explains the keys."""
    torch.set_num_threads(1)
    training = _training()
    turns = [{clients: _events_per_second(clients, horizon) for clients, horizon in SIZES.items()} for _ in range(3)]
    speeds = {clients: max(turn[clients] for turn in turns) for clients in SIZES}
    small, large = SIZES
    return {
        **training,
        **_in_a_process(_memory),
        "recorder_cpu_share": round(statistics.median(_recorder() for _ in range(TURNS)), 5),
        "events_per_second": {str(clients): round(rate) for clients, rate in speeds.items()},
        "time_per_event_growth": round(speeds[small] / speeds[large], 2),
        "log_growth": round(math.log(large) / math.log(small), 2),
    }


def _task(client: int, clients: int, steps: int = STEPS) -> Task:  # noqa: ARG001
    return lenet_task(steps)


def _lenets(clients: int, steps: int, workers: int, folder: Path | None = None) -> dict[str, Any]:
    """Simulate PushCen with LeNets for two compute events of each, on instant messages; evaluate nothing."""
    world = World(
        PushCen(),
        TrainingOptions(),
        clients=clients,
        horizon=EVENTS + 0.5,
        compute=ComputeOptions("constant"),
        evaluation=EvaluationOptions(every=EVENTS + 0.5),
        executor=ExecutorOptions(workers=workers),
    )
    return simulate_world(world, functools.partial(_task, steps=steps), folder)


def _training() -> dict[str, Any]:
    """Time the same training with 2 workers: bare in two processes, bare on two threads, and in a simulation.

    The machine may be shared: the bare ones are timed half before and half after the simulation, and medians count.
    """
    bare = Bare(CLIENTS, STEPS)
    bare.train(0)  # warm up: everything is loaded and compiled
    _lenets(4, 1, 2)
    with _SPAWN.Pool(2) as pool:
        pool.map(_bare_events, [1, 1], chunksize=1)  # warm up: both import everything
        turns = [_training_once(bare, pool) for _ in range(TURNS)]
    medians = {key: round(statistics.median(turn[key] for turn in turns), 3) for key in turns[0]}
    return {"clients": CLIENTS, "steps": CLIENTS * EVENTS * STEPS, **medians}


def _training_once(bare: Bare, pool: Any) -> dict[str, float]:
    apart = _processes(pool)
    threads, cpu = _threads(bare)
    begin = time.process_time()
    summary = _lenets(CLIENTS, STEPS, 2)
    simulated_cpu = time.process_time() - begin
    threads_after, cpu_after = _threads(bare)
    apart += _processes(pool)
    if summary["steps"] != CLIENTS * EVENTS:
        raise AssertionError(f"{summary['steps']} compute events: must be {CLIENTS * EVENTS}")
    simulated, threads = summary["times"]["run"], threads + threads_after
    return {
        "overhead_vs_training": simulated / threads,
        "overhead_vs_training_cpu": simulated_cpu / (cpu + cpu_after),
        "scaling_2_threads": apart / simulated,
        "bare_threads_vs_processes": apart / threads,
    }


def _processes(pool: Any) -> float:
    """Time half of the training in two processes; only a quarter of all is run, an eighth in each."""
    begin = time.perf_counter()
    pool.map(_bare_events, [CLIENTS * EVENTS // 8] * 2, chunksize=1)
    return 2 * (time.perf_counter() - begin)


def _threads(bare: Bare) -> tuple[float, float]:
    """Time half of the training on two threads; return seconds of the clock and of the CPU."""
    begin = time.process_time()
    seconds = bare.seconds(EVENTS // 2, 2)
    return seconds, time.process_time() - begin


def _bare_events(events: int) -> None:
    torch.set_num_threads(1)
    bare = _bare_here()
    for event in range(events):
        bare.train(event % (CLIENTS // 2))


@functools.cache
def _bare_here() -> Bare:
    return Bare(CLIENTS // 2, STEPS)


def _recorder() -> float:
    """Simulate the same in a folder; return how much of all CPU time went into the record of what happened."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        summary = _lenets(CLIENTS, STEPS, 2, Path(folder) / "run")
        share: float = summary["times"]["record"] / (time.process_time() - begin)
    return share


def _memory() -> dict[str, Any]:
    """Simulate a thousand LeNets with Adam here; return the peak memory over that of weights and optimiser states."""
    _lenets(4, 1, 2)  # warm up: everything is loaded and compiled
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    summary = _lenets(MANY, 1, 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    grown = peak - pages * resource.getpagesize()
    return {
        "memory_clients": MANY,
        "memory_per_client": round(grown / MANY / (3 * 4 * summary["parameters"]), 3),
        "memory_gigabytes": round(grown / 1e9, 2),
    }


def _in_a_process(function: Any) -> Any:
    """Measure in a process of its own, whose memory holds nothing else."""
    with _SPAWN.Pool(1) as pool:
        return pool.apply(function)


def _events_per_second(clients: int, horizon: float) -> float:
    """Measure events per CPU second with learners that do nothing."""
    world = World(
        PushCen(),
        TrainingOptions(),
        clients=clients,
        horizon=horizon,
        compute=ComputeOptions("classes", classes=(0.8, 0.9, 1.0, 1.1, 1.3)),
        neighbours=NeighbourOptions("view"),
        evaluation=EvaluationOptions(every=horizon),
        meters=MeterOptions(()),
        executor=ExecutorOptions(workers=1),
    )
    begin = time.process_time()
    summary = simulate_world(world, make=Trivial)
    rate: float = summary["events"] / (time.process_time() - begin)
    return rate
