"""Where all mass is, and that none was lost or made: Y_tot, Lemma 1."""

from typing import Any

from pushcen.protocol import Audit, audit
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading


class MassMeter(Meter):
    """The audit of all peers' books, in whole quanta; shares are of what was founded."""

    name = "mass"
    saved = ("exact",)
    exact = True
    found: Audit | None = None
    """The newest audit."""

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Audit, and return what was found."""
        row = self._figures()
        self.exact = self.exact and row["mass_exact"]
        return Reading((), lambda _: row)

    def _figures(self) -> dict[str, Any]:
        """Return the audit of all peers, those that left included."""
        engine = self.engine
        if not engine.moves_mass:
            return {"mass_exact": True}
        self.found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
        return self.found.figures(waiting=sum(node.peer.waiting for node in engine.nodes))

    def summary(self) -> dict[str, Any]:
        """Return whether every row was exact, and where the mass is at the end."""
        return {"exact": self.exact, **self._figures()}
