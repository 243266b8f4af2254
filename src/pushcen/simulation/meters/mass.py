"""Where all mass is, and that none was lost or made: Y_tot, Lemma 1."""

from typing import Any

from pushcen.protocol import audit
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.node import SimulatedClient


class MassMeter(Meter):
    """The audit of all peers' books, in whole quanta; shares are of what was founded."""

    name = "mass"
    kept = ("exact",)
    exact = True

    def look(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Audit."""
        row = self.read()
        self.exact = self.exact and row["mass_exact"]
        return Reading((), lambda _: row)

    def read(self) -> dict[str, Any]:
        """Audit all peers, those that left included."""
        engine = self.engine
        if not engine.moves_mass:
            return {"mass_exact": True}
        found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
        return found.figures(waiting=sum(node.peer.waiting for node in engine.nodes))

    def summary(self) -> dict[str, Any]:
        """Say whether every row was exact, and where the mass is at the end."""
        return {"exact": self.exact, **self.read()}
