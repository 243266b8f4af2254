"""The engine: takes events in order of pseudo-time and lets clients act. It decides everything, computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pushcen.client import Client
from pushcen.methods import Place
from pushcen.protocol import Ask, Peer, PeerId
from pushcen.references import References
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.evaluation import Evaluator
from pushcen.simulation.exchange import Exchanges
from pushcen.simulation.executors import Collector, Executor, Proxy, Ticket
from pushcen.simulation.jobs import Crash, Facts
from pushcen.simulation.neighbours import Neighbourhood
from pushcen.simulation.network import Delivery, ReferenceDelivery, Reply, SimulatedNetwork
from pushcen.simulation.offers import Push
from pushcen.simulation.options import World
from pushcen.simulation.pacing import Pacing
from pushcen.simulation.presence import Breakdown, HandOver, Join, Leave, Presence, Repair, Return
from pushcen.simulation.queue import COMPUTE, LOOK, Queue, QueueEvent
from pushcen.simulation.recorder import Recorder
from pushcen.streams import stream


@dataclass(slots=True, eq=False)
class Training(QueueEvent):
    """The compute time of a client ends."""

    kind: ClassVar[str] = "train"
    priority: ClassVar[int] = COMPUTE
    index: int
    attempt: int
    """Which of the client's compute events it is."""

    def happen(self, engine: "Engine") -> None:
        """Train, unless the client went away meanwhile."""
        node = engine.nodes[self.index]
        if self.attempt == node.attempt:
            engine.train(node)

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return [self.index, self.attempt]

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        return cls(*data)


@dataclass(slots=True, eq=False)
class Evaluation(QueueEvent):
    """Clients are evaluated, and meters read: for the `count`-th time."""

    kind: ClassVar[str] = "look"
    priority: ClassVar[int] = LOOK
    count: int

    def happen(self, engine: "Engine") -> None:
        """Evaluate."""
        engine.evaluate(self.count)

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        return self.count

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        return cls(data)


KINDS: dict[str, type[QueueEvent]] = {
    event.kind: event
    for event in (
        Training,
        Evaluation,
        Delivery,
        ReferenceDelivery,
        Reply,
        Join,
        Leave,
        Return,
        Breakdown,
        Repair,
        HandOver,
    )
}


class Engine:
    """A world that goes on from event to event."""

    def __init__(self, world: World, executor: Executor, facts: Sequence[Facts], start: Ticket) -> None:
        self.world = world
        self.executor = executor
        self.queue = Queue()
        self.now = 0.0
        self.events = 0  # of the queue, and deliveries that needed no queue
        self.steps = 0  # compute events
        self.first = start  # stands for the model that all start from
        self.neighbours = Neighbourhood(world, [fact.labels for fact in facts], self._gain)
        self._by_age, self._is_sparse = world.staleness.given is not None, world.sparsity.given is not None
        self.pacing = Pacing(self, world.staleness.ahead) if world.staleness.ahead else None
        self.join_times = world.participation.join_times(world.clients, world.seed)
        if len(self.join_times) == world.clients:  # somebody must begin
            earliest = min(self.join_times.values())
            self.founders = {client for client, time in self.join_times.items() if time == earliest}
        else:
            self.founders = set(range(world.clients)) - self.join_times.keys()
        factors = world.compute.factors(world.clients, world.seed)
        self.nodes = [self._node(client, facts[client], factors[client]) for client in range(world.clients)]
        self.by_name = {node.name: node for node in self.nodes}
        self.at: dict[PeerId, SimulatedClient] = {}  # who can be reached, under its present identity
        self.moves_mass = self.nodes[0].peer.rules.weights.moves_mass
        self.exchanges = Exchanges(self) if isinstance(self.nodes[0].peer.rules.outbox, Ask) else None
        self.founded = sum(node.peer.founded for node in self.nodes)
        self.collector = Collector(executor, world.executor.run_ahead)
        self.network = SimulatedNetwork(self)
        self.presence = Presence(self)
        self.evaluator = Evaluator(self)
        self.recorder: Recorder | None = None  # whoever has a folder to write to sets it

    def plan(self) -> None:
        """Begin at the beginning."""
        self.presence.plan(self.join_times)
        self._plan_evaluation(1)

    def act(self) -> None:
        """Make the next event happen."""
        self.now, event = self.queue.pop()
        self.events += 1
        event.happen(self)

    @property
    def over(self) -> bool:
        """Whether nothing more happens before the horizon."""
        return self.queue.next_time > self.world.horizon

    def ready(self, node: SimulatedClient) -> None:
        """Start a client's next compute event, unless it has to wait for others."""
        if self.pacing is None or not self.pacing.holds(node):
            self.start(node)

    def start(self, node: SimulatedClient) -> None:
        """Start a client's next compute event; if its rule has it wait for somebody, `received` does."""
        if not node.client.peer.ready:
            node.waits_since = self.now
            return
        node.attempt += 1
        if self.exchanges is not None:
            node.work = self.exchanges.begin(node)
        elif self.world.collect == "start":
            node.work = node.client.begin()
        end = self.now + self.world.compute.time(node.pace, node.client.rng)
        self.queue.put(end, Training(node.index, node.attempt))

    def received(self, node: SimulatedClient) -> None:
        """Start the compute event for which a client has waited, if what came is all that was missing."""
        if node.waits_since is not None and node.client.peer.ready:
            node.waited += self.now - node.waits_since
            node.waits_since = None
            self.start(node)

    def train(self, node: SimulatedClient) -> None:
        """End a client's compute time: it merges, trains and pushes, and starts again."""
        client = node.client
        peer = client.peer
        work = node.work or client.begin()
        node.work = None
        receivers, parts = self.neighbours.choose(node.name, peer, self.now)
        if self.exchanges is not None:
            receivers = self.exchanges.drawn(node, receivers)
        node.proxy.encodes = bool(receivers or peer.unsettled or self.exchanges)
        push = None if node.references is None else Push.plan(self, node, receivers)
        if push is not None:
            work = push.of(work)
        ticket = client.step(work)
        self.steps += 1
        node.events += 1
        self.mark(node, ticket)
        self.neighbours.merged(node.name, work.senders, ticket)
        if push is not None:
            push.note(node, ticket)
        envelopes = client.finish(receivers, ticket, parts if any(parts) else ())
        self.evaluator.stepped(node, work, envelopes, ticket)
        if envelopes:
            self.network.send(node, envelopes)
        if self.pacing is not None:
            self.pacing.worked(node)
        self.ready(node)

    def mark(self, node: SimulatedClient, ticket: Ticket) -> None:
        """Note when a client has made a message, and how long it is, where that is not always the same."""
        ticket.born = self.steps
        if self._by_age:
            ticket.at = self.now
        if self._is_sparse:
            ticket.size = self.world.sparsity.message_bytes(node.facts.schema, node.events)

    def evaluate(self, count: int) -> None:
        """Evaluate for the `count`-th time."""
        self.events -= 1  # evaluation is not part of the world
        self.evaluator.evaluate()
        self._plan_evaluation(count + 1)

    def lose(self, node: SimulatedClient) -> None:
        """Take from a client what was folded since its last event."""
        node.proxy.ask(Crash())
        self.evaluator.lost(node)

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes, as plain data and tickets: everything but the clients."""
        return {
            "now": self.now,
            "events": self.events,
            "steps": self.steps,
            "first": self.first,
            "queue": self.queue.save(),
            "reachable": {peer: node.index for peer, node in self.at.items()},
            **self.neighbours.save(),
            **self.network.save(),
            **self.presence.save(),
            **({} if self.pacing is None else {"pacing": self.pacing.save()}),
            "looker": self.evaluator.save(),
            **({} if self.recorder is None else {"recorder": self.recorder.save()}),
            **({} if self.exchanges is None else {"exchanges": self.exchanges.save()}),
        }

    def restore(self, state: dict[str, Any], clients: Sequence[dict[str, Any]]) -> None:
        """Go on from what `save` returned, and from what each client's `save` did."""
        for node, saved in zip(self.nodes, clients, strict=True):
            node.restore(saved)
        self.now, self.events, self.steps = state["now"], state["events"], state["steps"]
        self.queue.restore(state["queue"], KINDS)
        self.at = {peer: self.nodes[index] for peer, index in state["reachable"].items()}
        self.neighbours.restore(state, {node.name: node.peer for node in self.nodes})
        self.network.restore(state)
        self.presence.restore(state)
        if self.pacing is not None:
            self.pacing.restore(state["pacing"])
        self.evaluator.restore(state["looker"])
        if self.exchanges is not None:
            self.exchanges.restore(state["exchanges"])

    def close(self) -> None:
        """Let go of everything: it all knows the engine, and would be freed when Python next looks for cycles."""
        vars(self).clear()

    def _plan_evaluation(self, count: int) -> None:
        every, horizon = self.world.evaluation.every, self.world.horizon
        if (count - 1) * every < horizon or count == 1:
            self.queue.put(min(count * every, horizon), Evaluation(count))

    def _node(self, index: int, facts: Facts, factor: float) -> SimulatedClient:
        world = self.world
        rules = world.method.rules(Place(str(index), self.neighbours.edges, self.first))
        peer = (Peer.found if index in self.founders else Peer.join)(str(index), rules)
        client = Client(peer, Proxy(index, self.executor, facts.steps), stream(world.seed, "compute", index))
        if self._by_age:
            client.weigh = self._weigh
        pace = world.compute.pace(index, facts.steps, world.seed) * factor
        moves = world.method.moves
        references = None if moves is None else References(str(index), moves)
        return SimulatedClient(index, client, facts, pace, index not in self.founders, references)

    def _weigh(self, weight: int, ticket: Ticket) -> int:
        """Return what a message of some weight counts by now."""
        return self.world.staleness.weigh(weight, self.now - ticket.at)

    def _gain(self, ticket: Ticket) -> float | None:
        """Wait for what a compute event has gained. If it failed, the first one that did is the one to tell."""
        try:
            gain: float | None = self.executor.wait(ticket).gain
            return gain
        except Exception:
            self.collector.collect()
            raise
