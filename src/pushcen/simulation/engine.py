"""The engine: takes events in order of pseudo-time and lets clients act. It decides everything, computes nothing."""

from collections.abc import Callable, Sequence
from typing import Any

from pushcen.client import Client
from pushcen.methods import Place
from pushcen.protocol import BoundedView, Contact, FixedGraph, NeighbourChoice, Online, Peer, PeerId, RandomNeighbours
from pushcen.simulation.collector import Collector
from pushcen.simulation.evaluation import Evaluator
from pushcen.simulation.executors import Executor, Facts, Ticket
from pushcen.simulation.executors.proxy import Proxy
from pushcen.simulation.network import SimulatedNetwork
from pushcen.simulation.node import SimulatedClient
from pushcen.simulation.options import World
from pushcen.simulation.presence import Presence
from pushcen.simulation.queue import COMPUTE, LOOK, Queue
from pushcen.streams import stream


class Engine:
    """A world that goes on from event to event."""

    def __init__(self, world: World, runs: Executor, facts: Sequence[Facts], start: Ticket) -> None:
        self.world = world
        self.runs = runs
        self.queue = Queue()
        self.now = 0.0
        self.events = 0  # of the queue, and deliveries that needed no queue
        self.steps = 0  # compute events
        self.first = start  # stands for the model that all start from
        self.online: Online[str] = Online()
        names = [str(client) for client in range(world.clients)]
        self.edges = world.neighbours.edges(names, stream(world.seed, "graph"))
        self.rng = stream(world.seed, "neighbours")
        self.neighbours = self._neighbours()
        self.join_times = world.participation.join_times(world.clients, world.seed)
        if len(self.join_times) == world.clients:  # somebody must begin
            earliest = min(self.join_times.values())
            self.founders = {client for client, time in self.join_times.items() if time == earliest}
        else:
            self.founders = set(range(world.clients)) - self.join_times.keys()
        self.nodes = [self._node(client, facts[client]) for client in range(world.clients)]
        self.by_name = {node.name: node for node in self.nodes}
        self.at: dict[PeerId, SimulatedClient] = {}  # who can be reached, under its present identity
        self.moves_mass = self.nodes[0].peer.rules.weights.moves_mass
        self.founded = sum(node.peer.founded for node in self.nodes)
        self.collector = Collector(runs, world.executor.run_ahead)
        self.carrier = SimulatedNetwork(self)
        self.presence = Presence(self)
        self.looker = Evaluator(self)
        self._acts: dict[str, Callable[[Any], None]] = {
            "train": self.train,
            "deliver": self.carrier.deliver,
            "answer": self.carrier.answer,
            "join": self.presence.join,
            "leave": self.presence.leave,
            "return": self.presence.come_back,
            "crash": self.presence.crash,
            "repaired": self.presence.repaired,
            "hand over": self.presence.hand_over,
            "look": self._look,
        }

    def plan(self) -> None:
        """Begin at the beginning."""
        self.presence.plan(self.join_times)
        self._plan_look(1)

    def act(self) -> None:
        """Let the next event happen."""
        self.now, kind, data = self.queue.pop()
        self.events += 1
        self._acts[kind](data)

    @property
    def over(self) -> bool:
        """Whether nothing more happens before the horizon."""
        return self.queue.next_time > self.world.horizon

    def start(self, node: SimulatedClient) -> None:
        """Let a client start its next compute event."""
        node.run += 1
        if self.world.collect == "start":
            node.work = node.client.begin()
        end = self.now + self.world.compute.time(node.pace, node.client.rng)
        self.queue.put(end, COMPUTE, "train", (node.index, node.run))

    def train(self, data: tuple[int, int]) -> None:
        """Let a client's compute time end: it merges, trains and pushes, and starts again."""
        index, run = data
        node = self.nodes[index]
        if run != node.run:
            return  # it went away meanwhile
        client, peer = node.client, node.client.peer
        work = node.work or client.begin()
        node.work = None
        chosen = self.choose(node)
        node.proxy.encodes = bool(chosen or peer.unsettled)
        ticket = client.step(work)
        self.steps += 1
        node.events += 1
        ticket.born = self.steps
        parts = [part for _, part in chosen]
        envelopes = client.finish([contact for contact, _ in chosen], ticket, parts if any(parts) else ())
        self.looker.stepped(node, work, envelopes, ticket)
        if envelopes:
            self.carrier.send(node, envelopes)
        self.start(node)

    def choose(self, node: SimulatedClient) -> list[tuple[Contact, int]]:
        """Choose receivers by the method's rule, and say hello to them; each with the part that it gets."""
        draw, me, by_name = self.neighbours.draw, node.name, self.by_name
        chosen = node.client.peer.rules.outbox.choose(lambda k: draw(me, k))
        return [(by_name[name].client.peer.contact, part) for name, part in chosen]

    def lose(self, node: SimulatedClient) -> None:
        """Let a client lose what was folded since its last event."""
        node.proxy.ask("crash")
        self.looker.lost(node)

    def _look(self, count: int) -> None:
        self.events -= 1  # looking is not part of the world
        self.looker.look()
        self._plan_look(count + 1)

    def _plan_look(self, count: int) -> None:
        every, horizon = self.world.evaluation.every, self.world.horizon
        if (count - 1) * every < horizon or count == 1:
            self.queue.put(min(count * every, horizon), LOOK, "look", count)

    def _node(self, index: int, facts: Facts) -> SimulatedClient:
        world = self.world
        rules = world.method.rules(Place(str(index), self.edges, self.first))
        peer = (Peer.found if index in self.founders else Peer.join)(str(index), rules)
        proxy = Proxy(index, self.runs, facts.steps)
        proxy.measures = "events" in world.meters.names
        client = Client(peer, proxy, stream(world.seed, "compute", index))
        pace = world.compute.pace(index, facts.steps, world.seed)
        return SimulatedClient(index, client, facts, pace, late=index not in self.founders)

    def _neighbours(self) -> NeighbourChoice[str]:
        section = self.world.neighbours
        if self.edges is not None:
            return FixedGraph(self.edges, self.online, self.rng)
        if section.kind == "view":
            return BoundedView(self.online, self.rng, section.size, section.bound)
        return RandomNeighbours(self.online, self.rng)
