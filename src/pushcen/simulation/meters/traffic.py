"""Bytes: what was sent, received and lost, by each client and with each push."""

from typing import Any

from pushcen.simulation import scores
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading


class TrafficMeter(Meter):
    """Payload bytes."""

    name = "traffic"

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return the sums over all clients."""
        row = self._figures()
        return Reading((), lambda _: row)

    def _figures(self) -> dict[str, Any]:
        """Return the sums over all clients."""
        engine = self.engine
        sums = {name: sum(getattr(node, name) for node in engine.nodes) for name in ("bytes_received", "bytes_lost")}
        sent = sum(node.bytes_sent for node in engine.nodes)
        return {**sums, "bytes_per_push": sent / engine.steps if engine.steps else None}

    def summary(self) -> dict[str, Any]:
        """Return the mean and the spread over clients, and what an average push costs."""
        nodes = self.engine.nodes
        figures: dict[str, Any] = {"bytes_per_push": self._figures()["bytes_per_push"]}
        for name in ("bytes_sent", "bytes_received", "bytes_lost"):
            figures |= scores.spread([getattr(node, name) for node in nodes], f"client_{name}")
        return figures
