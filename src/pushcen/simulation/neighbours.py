"""Who can be pushed to: who is online, and whom each client's rule may choose among them."""

from typing import Any

from pushcen.protocol import BoundedView, Contact, NeighbourChoice, Online, Peer
from pushcen.simulation.options import World
from pushcen.streams import restore_stream, stream


class Neighbourhood:
    """The neighbours of all clients, as the `NeighbourOptions` section says, and how those online are reached."""

    def __init__(self, world: World) -> None:
        section = world.neighbours
        self._section = section
        self._graph = world.timed_graph()
        self.edges = self._graph.fixed if self._graph else None
        self.online: Online[str] = Online()
        self._rng = stream(world.seed, "neighbours")
        self._now = self._graph.at(0.0) if self._graph else None
        self._choice: NeighbourChoice[str] = section.choice(self._now, self.online, self._rng)
        self._contacts: dict[str, Contact] = {}  # of those who are or were online

    def arrive(self, name: str, peer: Peer) -> None:
        """Add a client to those online."""
        self.online.add(name)
        self._contacts[name] = peer.contact

    def depart(self, name: str) -> None:
        """Remove a client from those online."""
        self.online.remove(name)

    def choose(self, name: str, peer: Peer, now: float) -> tuple[list[Contact], list[int]]:
        """Choose receivers by the method's rule; return them, as after a hello, and the part that each gets."""
        if self._graph is not None and (edges := self._graph.at(now)) is not self._now:
            self._now = edges
            self._choice = self._section.choice(edges, self.online, self._rng)
        draw, contacts = self._choice.draw, self._contacts
        chosen = peer.rules.outbox.choose(lambda k: draw(name, k))
        return [contacts[who] for who, _ in chosen], [part for _, part in chosen]

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {
            "online": self.online.names,
            "left": sorted(self.online.left),
            "neighbours": self._rng.getstate(),
            "views": self._choice.save() if isinstance(self._choice, BoundedView) else None,
        }

    def restore(self, state: dict[str, Any], peers: dict[str, Peer]) -> None:
        """Go on from what `save` returned; `peers` are all clients' peers, by name."""
        online: Online[str] = Online(state["online"])
        self.online.__dict__.update(online.__dict__, left=set(state["left"]))
        self._contacts = {name: peers[name].contact for name in self.online.names}
        restore_stream(self._rng, state["neighbours"])
        if isinstance(self._choice, BoundedView):
            self._choice.restore(state["views"])
