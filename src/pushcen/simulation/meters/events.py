"""What the paper's analysis says of each compute event: staleness, drift, compression, the active client's weight."""

from collections.abc import Sequence
from typing import Any

from pushcen.learning import Outcome, Work
from pushcen.protocol import UNIT, Envelope
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading, added

START = {"sum": 0.0, "max": 0.0, "count": 0}


class EventMeter(Meter):
    """tau, Delta, epsilon_c, gamma_t, c-bar, y_min, y_max, mask density, and the shift of X_tot by compression.

    A row has the mean and the largest since the last row; the summary those of the whole run.
    """

    name = "events"
    measures = True
    watches = True
    saved = ("since", "ever", "y_min", "y_max", "gamma_min")

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.since: dict[str, dict[str, float]] = {}
        self.ever: dict[str, dict[str, float]] = {}
        held = [node.peer.held for node in engine.nodes if node.peer.held]
        self.y_min = min(held, default=0)
        self.y_max = max(held, default=0)
        self.gamma_min = 1.0

    def stepped(
        self, _node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket
    ) -> dict[str, float]:
        """Read what depends on masses and counts alone."""
        found: dict[str, float] = {"tau": max((ticket.born - used.born for _, _, used in work.models), default=0)}
        if not self.engine.moves_mass:
            return found
        held, pushed = _node.peer.held, sum(added(_node, envelopes))
        found["gamma"] = (held + pushed) / self.engine.founded
        found["c_bar"] = pushed / self.engine.founded
        if held:
            self.y_min, self.y_max = min(self.y_min or held, held), max(self.y_max, held + pushed)
            self.gamma_min = min(self.gamma_min, found["gamma"])
        return found

    def collected(self, outcome: Outcome, context: dict[str, float]) -> None:
        """Add what the learner measured."""
        context["density"] = outcome.density
        if outcome.drift is not None:
            context["drift"] = outcome.drift
        if outcome.distortion is not None:
            context["distortion"] = outcome.distortion
            if "c_bar" in context:
                context["compression_shift"] = context["c_bar"] * outcome.distortion
        for name, value in context.items():
            for table in (self.since, self.ever):
                entry = table.setdefault(name, dict(START))
                entry["sum"] += value
                entry["max"] = max(entry["max"], value)
                entry["count"] += 1

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return means and maxima since the last row."""
        return Reading((), self._finish)

    def _finish(self, _: list[Any]) -> dict[str, Any]:
        row = _figures(self.since)
        self.since = {}
        return row

    def summary(self) -> dict[str, Any]:
        """Return means and maxima of the whole run; the sum of the shifts; the smallest and largest mass, in units."""
        figures = _figures(self.ever)
        if self.engine.moves_mass:
            figures["y_min"], figures["y_max"] = self.y_min / UNIT, self.y_max / UNIT
            figures["gamma_min"] = self.gamma_min
        if "compression_shift" in self.ever:
            figures["compression_shift_sum"] = self.ever["compression_shift"]["sum"]
        return figures


def _figures(table: dict[str, dict[str, float]]) -> dict[str, Any]:
    means = {name: entry["sum"] / entry["count"] for name, entry in sorted(table.items())}
    return means | {f"{name}_max": entry["max"] for name, entry in sorted(table.items())}
