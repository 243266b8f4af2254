"""What rounds cost: how long clients wait for their neighbours."""

from typing import Any

from pushcen.simulation import scores
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading


class WaitingMeter(Meter):
    """The share of pseudo-time in which a client has nothing to compute, since a neighbour is not as far."""

    name = "waiting"

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return the mean over all clients, up to now."""
        row = {"waiting_share": scores.mean(self._shares())}
        return Reading((), lambda _: row)

    def summary(self) -> dict[str, Any]:
        """Return the mean and the spread over clients."""
        return scores.spread(self._shares(), "client_share")

    def _shares(self) -> list[float]:
        now = self.engine.now
        ends = [(node.waited, now if node.waits_since is None else node.waits_since) for node in self.engine.nodes]
        return [(waited + (now - since)) / now for waited, since in ends] if now else []
