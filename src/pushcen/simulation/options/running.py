"""How a run is observed (evaluation, meters) and carried out (executor, checkpoints). Neither changes what happens."""

import math
import os
from dataclasses import dataclass, field

from pushcen.checks import check_choice, check_count, check_flag, check_number
from pushcen.simulation.options.identity import CARRIED_OUT
from pushcen.units import PseudoTime, Seconds

EXECUTORS = ("threads", "ray")


@dataclass(frozen=True)
class EvaluationOptions:
    """How often clients are evaluated, and on what.

    Every `every`, each client online is evaluated on its own test data. `global_test` adds the global test set, and
    `reference` the de-biased reference model (sum of mass times model over total mass, mailboxes and messages under
    way included), on both. `per_client` writes each client's figure into the metrics. `targets` are values of the
    first metric as tables show it, 60 for 60 %: the summary tells what it took until each was held twice in a row.
    """

    every: PseudoTime = 1.0
    global_test: bool = False
    reference: bool = False
    per_client: bool = False
    targets: tuple[float, ...] = field(default=(), metadata=CARRIED_OUT)

    def __post_init__(self) -> None:
        check_number("every", self.every, above=True)
        for name in ("global_test", "reference", "per_client"):
            check_flag(name, getattr(self, name))
        for target in self.targets:
            check_number("targets", target, -math.inf)


@dataclass(frozen=True)
class MeterOptions:
    """Which meters run, by name; docs/simulation.md has the paper's symbol for each figure.

    - `mass`: the audit of Y_tot, y_min and y_max.
    - `traffic`: bytes sent, received and lost, of each client and of a push.
    - `events`: tau, Delta, epsilon_c, gamma_t, c-bar, mask density, the shift of X_tot by compression.
    - `mailbox`: how many messages were replaced, and how many evicted.
    - `kept`: the shift of X_tot by kept mass (expensive: compares messages).
    - `reference`: the consensus error (expensive: needs the reference model).
    - `gradient`: the gradient's norm at the reference model (more so: a pass over all training data).
    - `waiting`: how long clients wait for others. On with methods that have rounds.
    - `wraps`: how many numbers Moniqua may mistake (copies every model that is sent). On with it.
    - `module:Class`: a meter of one's own (docs/adding-a-meter.md).
    """

    names: tuple[str, ...] = ("mass", "traffic", "events", "mailbox")

    def __post_init__(self) -> None:
        from pushcen.simulation.meters import check_meters

        check_meters(self.names)


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
        check_choice("kind", self.kind, EXECUTORS)
        check_count("workers", self.workers)
        check_count("ahead", self.ahead)

    @property
    def size(self) -> int:
        """How many workers there are."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def run_ahead(self) -> int:
        """How many compute events may wait for their arithmetic."""
        return self.ahead or 16 * self.size


@dataclass(frozen=True)
class RecordOptions:
    """What is written down for `pushcen watch`: about so many compute `events`, and what they send (0: nothing).

    Of a run that has more, every n-th is; how clients stand is noted with the rows of the metrics.
    """

    events: int = 20_000

    def __post_init__(self) -> None:
        check_count("events", self.events)


@dataclass(frozen=True)
class CheckpointOptions:
    """Everything is saved when `seconds` have passed since the last time (by the clock on the wall), and at the end."""

    seconds: Seconds = 60.0

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds)
