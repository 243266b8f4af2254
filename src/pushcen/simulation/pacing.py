"""Who works: a client that is too far ahead of the slowest it could push to waits for that one."""

from typing import TYPE_CHECKING, Any

from pushcen.simulation.client import SimulatedClient

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


class Pacing:
    """Counts compute events, and lets no client begin one that is `ahead` of the slowest within its reach.

    The slowest of all never waits, so there is always one who works. Who comes, or comes back, counts as far as the
    slowest of those who are there, unless it was farther: nobody waits for it to make up for what it has missed.
    """

    def __init__(self, engine: "Engine", ahead: int) -> None:
        self._engine, self._ahead = engine, ahead
        self._done: dict[str, int] = {}  # compute events of each client that was ever online
        self._waiting: dict[int, None] = {}  # clients, in the order in which they began to wait

    def arrive(self, node: SimulatedClient) -> None:
        """Note that a client has come, which is online by now."""
        there = [self._done[name] for name in self._engine.neighbours.online.names if name != node.name]
        self._done[node.name] = max(self._done.get(node.name, 0), min(there, default=0))

    def depart(self, node: SimulatedClient) -> None:
        """Note that a client has gone: nobody waits for it any more."""
        self._waiting.pop(node.index, None)
        self._release()

    def worked(self, node: SimulatedClient) -> None:
        """Note that a client has had a compute event."""
        self._done[node.name] += 1
        self._release()

    def holds(self, node: SimulatedClient) -> bool:
        """Return whether a client has to wait; if so, it is started as soon as it may be."""
        if not self._is_ahead(node, self._least()):
            return False
        self._waiting[node.index] = None
        return True

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"done": self._done, "waiting": list(self._waiting)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self._done, self._waiting = dict(state["done"]), dict.fromkeys(state["waiting"])

    def _is_ahead(self, node: SimulatedClient, least: int) -> bool:
        """Return whether a client is too far ahead, where `least` is what the slowest of all online has done."""
        if self._done[node.name] - least < self._ahead:
            return False
        near = self._engine.neighbours.near(node.name, self._engine.now)
        slowest = least if near is None else min((self._done[name] for name in near), default=self._done[node.name])
        return self._done[node.name] - slowest >= self._ahead

    def _least(self) -> int:
        return min((self._done[name] for name in self._engine.neighbours.online.names), default=0)

    def _release(self) -> None:
        if not self._waiting:
            return
        least = self._least()
        for index in list(self._waiting):
            node = self._engine.nodes[index]
            if not self._is_ahead(node, least):
                del self._waiting[index]
                self._engine.start(node)
