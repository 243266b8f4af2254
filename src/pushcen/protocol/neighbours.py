"""Who a peer pushes to: random peers drawn anew, a bounded view that changes slowly, or a fixed directed graph.

All three draw among those online, with a random generator that is passed in. A rule of the outbox calls them as
`rule.choose(lambda k: neighbours.draw(me, k))`. Peers may go by name, or by anything else that can be a dict's key.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

from pushcen.checks import check_count, check_order

T = TypeVar("T", bound=Hashable)


class NeighbourChoice(Protocol[T]):
    """How receivers are found."""

    def draw(self, me: T, k: int) -> list[T]:
        """Return up to `k` different peers that are online, never `me`. 0 asks for all there are."""


class Online(Generic[T]):
    """The peers that are online, in a list that one can draw from, join and leave in constant time.

    >>> online = Online(["a", "b", "c"])
    >>> online.remove("a")
    >>> sorted(online.names), "a" in online
    (['b', 'c'], False)
    """

    def __init__(self, names: Iterable[T] = ()) -> None:
        self.names = list(names)
        self._places = {name: place for place, name in enumerate(self.names)}
        self.left: set[T] = set()  # who was online once and is not now

    def __contains__(self, name: T) -> bool:
        return name in self._places

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: T) -> None:
        """Note that a peer is online."""
        if name not in self._places:
            self._places[name] = len(self.names)
            self.names.append(name)
            self.left.discard(name)

    def remove(self, name: T) -> None:
        """Note that a peer is offline."""
        place, last = self._places.pop(name), self.names.pop()
        self.left.add(name)
        if last != name:
            self.names[place] = last
            self._places[last] = place


class RandomNeighbours(Generic[T]):
    """`k` random online peers, drawn anew at every push: the paper's experiments. Links grow with every push."""

    def __init__(self, online: Online[T], rng: Random) -> None:
        self._online = online
        self._rng = rng

    def draw(self, me: T, k: int) -> list[T]:
        """Return up to `k` different peers that are online, never `me`. 0 asks for all there are."""
        names = self._online.names
        others = len(names) - (me in self._online)
        if k == 0 or k >= others:
            return [name for name in names if name != me]
        if 2 * k > others:
            return self._rng.sample([name for name in names if name != me], k)
        random, size = self._rng.random, len(names)
        drawn: dict[T, None] = {me: None}
        while len(drawn) <= k:
            drawn[names[int(random() * size)]] = None
        del drawn[me]
        return list(drawn)


class BoundedView(Generic[T]):
    """A view of `size` peers for each peer, which changes slowly, among at most `bound` that it knows at a time.

    A link's totals cannot be forgotten while the link lives, so links are bounded by bounding whom a peer pushes to.
    Each push goes to a window of the view. At about every `every`-th push, and whenever a member is offline, one member
    is exchanged: for somebody new while fewer than `bound` are known, then for somebody met before. Only if none of
    these is online does somebody new take the place of one who is not. So while nobody goes, no more than `bound` are
    ever met; and whoever goes, there is somebody to push to while anybody is online.
    """

    def __init__(self, online: Online[T], rng: Random, size: int = 20, bound: int = 40, every: int = 10) -> None:
        check_count("size", size, 1)
        check_order("size", size, "bound", bound)
        check_count("every", every, 1)
        self._online = online
        self._rng = rng
        self._size = size
        self._bound = bound
        self._every = every
        self._met: dict[T, list[T]] = {}  # the first `size` are the view

    def draw(self, me: T, k: int) -> list[T]:
        """Return up to `k` different peers that are online, never `me`. 0 asks for the whole view."""
        met = self._met.get(me)
        if not met:
            met = self._met[me] = self._newcomers(me, [], self._size)
            if not met:
                return []
        random, seen = self._rng.random, min(self._size, len(met))
        if random() * self._every < 1:
            self._exchange(me, met, int(random() * seen))
        if self._online.left:
            for place in range(seen):
                if met[place] not in self._online:
                    self._exchange(me, met, place)
            met = [name for name in met[: self._size] if name in self._online]
            seen = len(met)
        start = int(random() * seen)
        end = start + min(k or seen, seen)
        return met[start:end] if end <= seen else met[start:seen] + met[: end - seen]

    def save(self) -> list[tuple[T, list[T]]]:
        """Return whom each peer has met, as the state that `restore` takes."""
        return [(me, list(met)) for me, met in self._met.items()]

    def restore(self, state: Iterable[tuple[T, list[T]]]) -> None:
        """Take over what `save` returned."""
        self._met = {me: list(met) for me, met in state}

    def _exchange(self, me: T, met: list[T], place: int) -> None:
        size = self._size
        if len(met) < self._bound:
            met += self._newcomers(me, met, 1)
        others = [at for at in range(size, len(met)) if met[at] in self._online]
        if not others:
            absent = [at for at in (*range(size, len(met)), place) if met[at] not in self._online][:1]
            for at, name in zip(absent, self._newcomers(me, met, len(absent)), strict=False):
                met[at] = name
                others = [at]
        if others:
            at = others[int(self._rng.random() * len(others))]
            met[place], met[at] = met[at], met[place]

    def _newcomers(self, me: T, met: list[T], count: int) -> list[T]:
        """Draw peers not met before."""
        known = {me, *met}
        if 2 * (len(known) + count) > len(self._online):
            strangers = [name for name in self._online.names if name not in known]
            return self._rng.sample(strangers, min(count, len(strangers)))
        names = self._online.names
        found: list[T] = []
        while len(found) < count:
            name = names[int(self._rng.random() * len(names))]
            if name not in known:
                known.add(name)
                found.append(name)
        return found


class FixedGraph(Generic[T]):
    """A fixed directed graph: the online out-neighbours, or `k` of them at random."""

    def __init__(self, edges: Mapping[T, Sequence[T]], online: Online[T], rng: Random) -> None:
        self._edges = edges
        self._online = online
        self._rng = rng

    def draw(self, me: T, k: int) -> list[T]:
        """Return up to `k` different peers that are online, never `me`. 0 asks for all there are."""
        names = [name for name in self._edges[me] if name in self._online]
        return names if k == 0 or k >= len(names) else self._rng.sample(names, k)
