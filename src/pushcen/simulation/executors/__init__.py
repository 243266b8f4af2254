"""Where learners do their work: threads of this process, or the actors of a Ray cluster. The results are the same."""

from collections.abc import Sequence
from typing import Any, Protocol

from pushcen.simulation.executors.host import Facts, Host, Make, MakeLearner, Operation
from pushcen.simulation.executors.ticket import Ticket
from pushcen.simulation.options import ExecutorOptions


class Executor(Protocol):
    """What every executor offers."""

    def submit(self, client: int, operations: Sequence[Operation], inputs: Sequence[Any] = ()) -> Any:
        """Append a task to a client's chain; return its ticket."""

    def wait(self, ticket: Any) -> Any:
        """Wait for a task's facts; raise what it raised."""

    def is_done(self, ticket: Any) -> bool:
        """Say whether `wait` would return at once."""

    def product(self, ticket: Any) -> Any:
        """Wait for a task's product."""

    def messages(self, ticket: Any) -> dict[int, bytes]:
        """Wait for a task whose product is payloads; give their bytes, by part."""

    def given(self, client: int, product: Any) -> Any:
        """Make a ticket for what is there already."""

    def close(self) -> None:
        """Let go of everything."""


def start(executor: ExecutorOptions, host: Host) -> Executor:
    """Start the executor that was chosen."""
    if executor.kind == "ray":
        from pushcen.simulation.executors.cluster import Cluster

        return Cluster(host, executor.size, executor.address)
    from pushcen.simulation.executors.threads import Threads

    return Threads(host, executor.size)


__all__ = ["Executor", "Facts", "Host", "Make", "MakeLearner", "Operation", "Ticket", "start"]
