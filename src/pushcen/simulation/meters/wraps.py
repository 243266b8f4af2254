"""Where Moniqua goes wrong: numbers of a neighbour that are `theta` or more away, and taken for others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pushcen.codec import Dense, decode_row, encode_row
from pushcen.learning import Work
from pushcen.methods import Moniqua
from pushcen.protocol import Envelope
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Host, Ticket
from pushcen.simulation.jobs import Job, Result, row_of
from pushcen.simulation.meters.meter import Meter, Reading


@dataclass(frozen=True, slots=True)
class CopyModel(Job):
    """Copies the shared weights, as a message, which a checkpoint can keep."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Make the message."""
        learner = host.learners[client]
        return None, {0: encode_row(row_of(learner), Dense(), learner.schema)}


@dataclass(frozen=True, slots=True)
class CountWraps(Job):
    """Counts in how many places models are `theta` or more apart from the first of them; the inputs are copies."""

    theta: float

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[int, None]:  # noqa: ARG002
        """Return the count."""
        own, *others = (decode_row(copy[0]) for copy in inputs)
        return sum(int(((other - own).abs() >= self.theta).sum()) for other in others), None


class WrapMeter(Meter):
    """Compares the model of which each message was made with the model that it is merged into; no client could."""

    name = "wraps"
    watches = True
    saved = ("wraps", "numbers")

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.wraps = self.numbers = 0
        method = engine.world.method
        self._theta: float | None = method.theta if isinstance(method, Moniqua) else None
        self._own: dict[int, Ticket] = {}  # each client's model, as it is until its next event
        self._sent: WeakKeyDictionary[Ticket, Ticket] = WeakKeyDictionary()  # the models of which messages were made
        self._first = None if self._theta is None else engine.nodes[0].proxy.ask(CopyModel())

    def stepped(self, node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket) -> None:  # noqa: ARG002
        """Compare what was merged, and copy what is sent."""
        if self._theta is None:
            return
        if work.models:
            copies = [self._own.get(node.index, self._first), *(self._sent[used] for _, _, used in work.models)]
            counted = node.proxy.ask(CountWraps(self._theta), *copies)
            self.engine.collector.add((counted,), self._count, len(work.models) * node.facts.parameters)
        self._own[node.index] = self._sent[ticket] = node.proxy.ask(CopyModel())

    def _count(self, found: list[int], numbers: int) -> None:
        self.wraps += found[0]
        self.numbers += numbers

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return how many numbers have wrapped up to now, and which share of all."""
        return Reading((), lambda _: self.summary())

    def summary(self) -> dict[str, Any]:
        """Return how many numbers have wrapped, and which share of all that were received and merged."""
        if self._theta is None:
            return {}
        return {"wraps": self.wraps, "wraps_share": self.wraps / self.numbers if self.numbers else 0.0}

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        if self._theta is None:
            return super().save()
        copies = {"first": self._first, "own": list(self._own.items()), "sent": list(self._sent.items())}
        return super().save() | copies

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        super().restore(state)
        if self._theta is not None:
            self._first, self._own = state["first"], dict(state["own"])
            self._sent = WeakKeyDictionary(dict(state["sent"]))
