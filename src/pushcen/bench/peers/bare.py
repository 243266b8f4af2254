"""The training alone: every client's model in a plain loop, on a thread for each core."""

import sys
import threading
import time

import torch
from work import CORES, lenet, report, train

try:
    from pushcen.memory import keep_freed_memory
except ImportError:
    pass  # the environment of another tool
else:
    keep_freed_memory()  # as pushcen's learners do: what that saves is not counted for pushcen

clients, rounds = map(int, sys.argv[1:])
models = [lenet() for _ in range(clients)]


def loop(first: int, times: int) -> None:
    """Train every second model, or whichever this thread has."""
    torch.set_num_threads(1)
    for _ in range(times):
        for model in models[first::CORES]:
            train(model)


def seconds(times: int) -> float:
    """Return how long so many updates of every client take."""
    threads = [threading.Thread(target=loop, args=(first, times)) for first in range(CORES)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


seconds(1)  # warm up
report(clients * rounds, seconds(rounds))
