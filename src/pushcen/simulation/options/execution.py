"""How a run is carried out: where the arithmetic is done, how often everything is saved. Neither changes results."""

import os
from dataclasses import dataclass

from pushcen.checks import check_choice, check_count, check_number

EXECUTORS = ("threads", "ray")


@dataclass(frozen=True)
class ExecutorOptions:
    """Where learners do their work: in `threads` of this process, or in the actors of a `ray` cluster.

    `workers` is how many there are (0: as many as cores), each with one torch thread. The event queue runs at most
    `ahead` compute events ahead of them (0: as many as keep them busy). `address` is the Ray cluster's; empty starts
    one on this machine.
    """

    kind: str = "threads"
    workers: int = 0
    ahead: int = 0
    address: str = ""

    def __post_init__(self) -> None:
        check_choice("executor.kind", self.kind, EXECUTORS)
        check_count("executor.workers", self.workers)
        check_count("executor.ahead", self.ahead)

    @property
    def size(self) -> int:
        """How many workers there are."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def run_ahead(self) -> int:
        """How many compute events may wait for their arithmetic."""
        return self.ahead or 16 * self.size


@dataclass(frozen=True)
class CheckpointOptions:
    """Everything is saved when `seconds` have passed since the last time (by the clock on the wall), and at the end."""

    seconds: float = 60.0

    def __post_init__(self) -> None:
        check_number("checkpoint.seconds", self.seconds)
