"""How far clients are from the reference model: E_con."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pushcen.simulation import scores
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Host, Ticket
from pushcen.simulation.jobs import Job, row_of
from pushcen.simulation.meters.meter import Meter, Reading


@dataclass(frozen=True, slots=True)
class Distance(Job):
    """Measures how far the client's weights are from a row, which is the input: the squared norm."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[float, None]:
        """Return the distance."""
        own = row_of(host.learners[client]).double()
        return float((own - next(inputs)).square().sum()), None


class ConsensusMeter(Meter):
    """The consensus error: the mean squared distance of clients' models from the reference."""

    name = "reference"
    needs_reference = True

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:
        """Measure how far everybody is."""
        asked = nodes if reference is not None else []
        tickets = [node.proxy.ask(Distance(), reference) for node in asked]
        return Reading(tickets, lambda found: {"consensus_error": scores.mean(found)})
