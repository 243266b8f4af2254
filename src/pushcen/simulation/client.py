"""One client in the simulated world: what is driven, where it stands, and what was counted of it."""

from typing import Any

from pushcen.client import Client
from pushcen.learning import Model, Work
from pushcen.protocol import Peer, PeerId
from pushcen.references import References
from pushcen.simulation.executors import Proxy
from pushcen.simulation.jobs import Facts
from pushcen.streams import restore_stream

TRAFFIC = ("bytes_sent", "bytes_received", "bytes_lost", "messages_sent", "messages_lost")
LATER = ("reference_bytes", "waited", "waits_since")  # which earlier checkpoints do not have
COUNTED = (*TRAFFIC, *LATER, "events", "replaced", "evicted")
SAVED = ("online", "present", "free", "visits", "heard", "best", *COUNTED)


class SimulatedClient:
    """A client, and what the world knows of it."""

    __slots__ = (
        "attempt",
        "best",
        "client",
        "expects",
        "facts",
        "free",
        "heard",
        "index",
        "late",
        "name",
        "online",
        "pace",
        "present",
        "proxy",
        "references",
        "visits",
        "work",
        *COUNTED,
    )

    def __init__(
        self,
        index: int,
        client: Client[Proxy],
        facts: Facts,
        pace: float,
        late: bool,
        references: References | None = None,
    ) -> None:
        self.index = index
        self.name = str(index)
        self.client = client
        self.proxy = client.learner
        self.facts = facts
        self.pace = pace  # the usual time of its compute events
        self.late = late  # whether it joins after the start
        self.references = references  # that it holds, if they move
        self.online = False
        self.present = False  # whether it has ever been online
        self.attempt = 0  # numbers its compute events, those that were broken off too
        self.work: Work | None = None  # of an event that has begun
        self.free = 0.0  # when it has sent all that it had to send
        self.visits = 0  # how often it came or went
        self.heard = 0  # how many farewells it has heard of
        self.expects: dict[PeerId, int] = {}  # receivers whose answers are under way, and how many
        self.best: float | None = None  # of all its evaluations
        self.bytes_sent = self.bytes_received = self.bytes_lost = 0
        self.messages_sent = self.messages_lost = 0
        self.reference_bytes = 0  # of all that it sent
        self.waited = 0.0  # how long it has waited for others, in all but the wait that goes on
        self.waits_since: float | None = None  # that it waits for what a neighbour sends, if it does
        self.events = 0  # compute events
        self.replaced = self.evicted = 0  # in mailboxes that it has no more
        self.connect(client.peer)

    @property
    def peer(self) -> Peer:
        """Its side of the protocol."""
        return self.client.peer

    def connect(self, peer: Peer) -> None:
        """Go on as `peer`: after a restart, or in a new epoch."""
        before = self.client.peer
        if peer is not before:
            self.replaced += before.replaced
            self.evicted += before.evicted
        self.client.peer = peer
        self.expects = {}
        peer.expects = self.expects

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes, as plain data and tickets: everything but the learner."""
        return {name: getattr(self, name) for name in SAVED} | {
            "run": self.attempt,
            "work": self.work,
            "expects": self.expects,
            "peer": self.peer.snapshot(),
            "rng": self.client.rng.getstate(),
            **({} if self.references is None else {"references": self.references.save()}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.connect(Peer.resume(state["peer"], self.peer.rules))
        self.expects.update(state["expects"])
        restore_stream(self.client.rng, state["rng"])
        self.attempt, work = state["run"], state["work"]
        senders = work[6] if work and len(work) > 6 else ()  # older checkpoints do not say
        self.work = work and Work(work[0], [Model(*model) for model in work[1]], work[2], senders=senders)
        if self.references is not None:
            self.references.restore(state["references"])
        for name in SAVED:
            setattr(self, name, state.get(name, getattr(self, name)) if name in LATER else state[name])
