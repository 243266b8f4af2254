"""How far kept mass moves the sum of masses times models: share * (new - old), whenever mass rides on a newer model."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pushcen.learning import Work
from pushcen.protocol import Buffer, Envelope, name_of
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Host, Ticket
from pushcen.simulation.jobs import Job
from pushcen.simulation.meters.meter import Meter, Reading, added
from pushcen.simulation.reference import decoded

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Difference(Job):
    """Measures how far two whole messages, which are the inputs, are apart: the norm."""

    def run(self, host: Host, client: int, inputs: Iterator[Any]) -> tuple[float, None]:
        """Return the distance."""
        one, other = (decoded(next(inputs)[0], host.learners[client]) for _ in range(2))
        return float((one - other).norm()), None


class MassShiftMeter(Meter):
    """A book of its own: which mass was sent on which model, and on which model it was merged.

    Of each link, the stretches of its running total and the messages they were sent on; and how much of it was merged.
    """

    name = "kept"
    watches = True
    saved = ("sum", "max", "count")

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.sum, self.max, self.count = 0.0, 0.0, 0
        self._sent: dict[Link, deque[tuple[int, int, Ticket]]] = {}
        self._merged: dict[Link, int] = {}
        self._folded: dict[int, list[tuple[int, Ticket]]] = {}
        inbox = engine.nodes[0].peer.rules.inbox
        self._on = engine.moves_mass and isinstance(inbox, Buffer) and inbox.mass == "keep"
        if self._on:
            for node in engine.nodes:
                node.proxy.watch = self._fold

    def stepped(self, node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket) -> None:  # noqa: ARG002
        """Compare the model on which each bit of mass was merged with the one on which it was sent."""
        if not self._on:
            return
        merged = self._folded.pop(node.index, []) + [(weight, used) for weight, _, used in work.models]
        merged.sort(key=lambda pair: pair[1].born)  # of each sender, the older first
        pairs = [pair for weight, used in merged for pair in self._moved(node.index, weight, used)]
        if pairs:
            tickets = [node.proxy.ask(Difference(), used, old) for _, used, old in pairs]
            self.engine.collector.add(tickets, self._count, [mass for mass, _, _ in pairs])
        self.pushed(node, envelopes, added(node, envelopes))

    def pushed(self, node: SimulatedClient, envelopes: Sequence[Envelope], masses: Sequence[int]) -> None:
        """Note which mass is sent on which model."""
        if not self._on:
            return
        for envelope, mass in zip(envelopes, masses, strict=True):
            link = (node.index, int(name_of(envelope.receiver)))
            book = self._sent.setdefault(link, deque())
            begin = envelope.total - mass
            if not begin:  # a new link, maybe with the same clients in other epochs
                book.clear()
                self._merged[link] = 0
            while book and book[-1][1] > begin:
                book.pop()  # it failed, and its mass came back
            if mass:
                book.append((begin, envelope.total, envelope.payload))

    def _fold(self, client: int, weight: int, ticket: Ticket) -> None:
        self._folded.setdefault(client, []).append((weight, ticket))

    def lost(self, node: SimulatedClient) -> None:
        """Forget what was folded and never merged."""
        self._folded.pop(node.index, None)

    def _moved(self, receiver: int, weight: int, used: Ticket) -> list[tuple[int, Ticket, Ticket]]:
        """Return the masses merged with `used` that were sent on other messages."""
        link = (used.client, receiver)
        book, upto = self._sent.get(link), self._merged.get(link, 0) + weight
        self._merged[link] = upto
        moved = []
        while book and book[0][0] < upto:
            begin, end, old = book.popleft()
            if end > upto:
                book.appendleft((upto, end, old))
                end = upto
            if old is not used:
                moved.append((end - begin, used, old))
        return moved

    def _count(self, distances: list[float], masses: list[int]) -> None:
        for distance, mass in zip(distances, masses, strict=True):
            shift = distance * mass / self.engine.founded
            self.sum += shift
            self.max = max(self.max, shift)
            self.count += 1

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return the sum of all shifts' norms, over Y_tot, up to now."""
        return Reading((), lambda _: {"kept_shift_sum": self.sum})

    def summary(self) -> dict[str, Any]:
        """Return the sum and the largest of all shifts' norms, over Y_tot."""
        return {"kept_shift_sum": self.sum, "kept_shift_max": self.max, "kept_shifts": self.count}

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        books = [[*link, list(book)] for link, book in self._sent.items() if book]
        merged = [[*link, mass] for link, mass in self._merged.items()]
        return super().save() | {"books": books, "merged": merged, "folded": list(self._folded.items())}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        super().restore(state)
        self._sent = {(a, b): deque(tuple(entry) for entry in book) for a, b, book in state["books"]}
        self._merged = {(a, b): mass for a, b, mass in state["merged"]}
        self._folded = {client: [tuple(fold) for fold in folds] for client, folds in state["folded"]}
