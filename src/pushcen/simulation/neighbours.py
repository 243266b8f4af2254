"""Who can be pushed to: who is online, whom each client's rule may choose among them, and which of these it picks."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from pushcen.errors import OptionError
from pushcen.protocol import BoundedView, ByBandit, ByPriority, Contact, NeighbourChoice, NeighbourPolicy, Online, Peer
from pushcen.simulation.options import World
from pushcen.streams import restore_stream, stream

LabelShares = Mapping[int, float]
"""The share of each label in a client's training data."""


class Neighbourhood:
    """The neighbours of all clients, as the `NeighbourOptions` section says, and how those online are reached.

    `labels` has the label shares of every client, for the policy that needs them; `gain` waits for what a compute
    event, by its ticket, has gained from what it merged.
    """

    def __init__(self, world: World, labels: Sequence[LabelShares | None], gain: Callable[[Any], float | None]) -> None:
        section = world.neighbours
        self._section = section
        self._graph = world.timed_graph()
        self.edges = self._graph.fixed if self._graph else None
        self.online: Online[str] = Online()
        self._rng = stream(world.seed, "neighbours")
        self._now = self._graph.at(0.0) if self._graph else None
        self._choice: NeighbourChoice[str] = section.choice(self._now, self.online, self._rng)
        self._contacts: dict[str, Contact] = {}  # of those who are or were online
        self._picks = stream(world.seed, "policy")
        self._policy: NeighbourPolicy[str] | None = None
        if section.policy == "priority":
            self._policy = ByPriority(differences_of(labels), section.by_data, self._picks)
        elif section.policy == "bandit":
            self._policy = ByBandit(section.explore, self._picks)
        self._gain = gain
        self._merged: dict[str, tuple[Sequence[str], Any]] = {}  # who sent what each client merged last, and its ticket

    def arrive(self, name: str, peer: Peer) -> None:
        """Add a client to those online."""
        self.online.add(name)
        self._contacts[name] = peer.contact

    def depart(self, name: str) -> None:
        """Remove a client from those online."""
        self.online.remove(name)

    def choose(self, name: str, peer: Peer, now: float) -> tuple[list[Contact], list[int]]:
        """Choose receivers by the method's rule; return them, as after a hello, and the part that each gets."""
        self._turn(now)
        draw, contacts = self._choice.draw, self._contacts
        if self._policy is None:
            chosen = peer.rules.outbox.choose(lambda k: draw(name, k))
        else:
            self._learn(name)
            pick = self._policy.pick
            chosen = peer.rules.outbox.choose(lambda k: pick(name, draw(name, 0), k))
        return [contacts[who] for who, _ in chosen], [part for _, part in chosen]

    def near(self, name: str, now: float) -> list[str] | None:
        """Return those online whom a client could push to on the graph; None if there is none, and it could to all."""
        self._turn(now)
        return None if self._now is None else [other for other in self._now[name] if other in self.online]

    def merged(self, name: str, senders: Sequence[str], ticket: Any) -> None:
        """Note whose models a compute event merges: what it gains by them is asked for when its client pushes again."""
        if isinstance(self._policy, ByBandit) and senders:
            self._merged[name] = (senders, ticket)

    def _learn(self, name: str) -> None:
        """Let a client's policy know what its last compute event has gained."""
        senders, ticket = self._merged.pop(name, ((), None))
        if isinstance(self._policy, ByBandit) and senders and (gain := self._gain(ticket)) is not None:
            self._policy.reward(name, senders, gain)

    def _turn(self, now: float) -> None:
        """Take the graph of this moment, if it is another one."""
        if self._graph is not None and (edges := self._graph.at(now)) is not self._now:
            self._now = edges
            self._choice = self._section.choice(edges, self.online, self._rng)

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        for name in list(self._merged):
            self._learn(name)
        return {
            "online": self.online.names,
            "left": sorted(self.online.left),
            "neighbours": self._rng.getstate(),
            "views": self._choice.save() if isinstance(self._choice, BoundedView) else None,
            **({} if self._policy is None else {"policy": [self._picks.getstate(), self._policy.save()]}),
        }

    def restore(self, state: dict[str, Any], peers: dict[str, Peer]) -> None:
        """Go on from what `save` returned; `peers` are all clients' peers, by name."""
        online: Online[str] = Online(state["online"])
        self.online.__dict__.update(online.__dict__, left=set(state["left"]))
        self._contacts = {name: peers[name].contact for name in self.online.names}
        restore_stream(self._rng, state["neighbours"])
        if isinstance(self._choice, BoundedView):
            self._choice.restore(state["views"])
        if self._policy is not None:
            picks, known = state["policy"]
            restore_stream(self._picks, picks)
            self._policy.restore(known)


def differences_of(labels: Sequence[LabelShares | None]) -> Callable[[str, str], float]:
    """Return how far the labels of two clients differ, by their names: half the sum of all differences of shares.

    >>> difference = differences_of([{0: 0.5, 1: 0.5}, {0: 1.0}, {2: 1.0}])
    >>> difference("0", "1"), difference("1", "2"), difference("2", "2")
    (0.5, 1.0, 0.0)
    """
    for client, shares in enumerate(labels):
        if shares is None:
            raise OptionError(
                f"neighbours.policy = 'priority': the training data of client {client} has no labels, one whole number "
                "for each sample, to compare; must be random or bandit"
            )

    @cache
    def difference(one: str, other: str) -> float:
        mine, theirs = labels[int(one)] or {}, labels[int(other)] or {}
        known = sorted(mine.keys() | theirs.keys())
        return sum(abs(mine.get(label, 0.0) - theirs.get(label, 0.0)) for label in known) / 2

    return difference
