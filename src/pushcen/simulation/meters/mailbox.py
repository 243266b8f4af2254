"""What happens in mailboxes: messages that newer ones replaced, and messages that had to make room."""

from typing import Any

from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading


class MailboxMeter(Meter):
    """Counts over all clients and the whole run."""

    name = "mailbox"

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return the counts."""
        row = {f"mailbox_{name}": count for name, count in self.summary().items()}
        return Reading((), lambda _: row)

    def summary(self) -> dict[str, Any]:
        """Return the counts."""
        nodes = self.engine.nodes
        return {
            "replaced": sum(node.replaced + node.peer.replaced for node in nodes),
            "evicted": sum(node.evicted + node.peer.evicted for node in nodes),
        }
