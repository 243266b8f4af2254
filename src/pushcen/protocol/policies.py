"""Which of all that a peer could push to it does push to: by a priority of data and age, or by what it has learned.

Pure bookkeeping, like the choice of neighbours that it narrows: random generators, differences of data and gains are
passed in. One policy may keep the books of many peers, each for itself.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from pushcen.checks import check_number

T = TypeVar("T", bound=Hashable)
_FOLLOWS = 8  # of the newest gains, about so many count


class NeighbourPolicy(Protocol[T]):
    """How receivers are picked among those that the choice of neighbours offers."""

    def pick(self, me: T, others: Sequence[T], k: int, /) -> list[T]:
        """Return `k` of the others, or all if there are no more; 0 asks for all."""

    def save(self) -> list[Any]:
        """Return the state that `restore` takes."""

    def restore(self, state: Iterable[Any], /) -> None:
        """Take over what `save` returned."""


class ByPriority(Generic[T]):
    """Those whose data differ most, and that were not pushed to for longest.

        p_j = b d_ij + (1 - b) a_ij / max_l a_il

    d_ij, from 0 to 1, is how far the data of i and j differ, and a_ij how many pushes of i ago j was last picked (all
    of them, if it never was); b is `by_data`. The k largest are picked, among equals at random.

    >>> policy = ByPriority(lambda me, other: float(other == "far"), by_data=0.5, rng=Random(1))
    >>> [policy.pick("me", ["near", "far"], 1) for _ in range(4)]
    [['far'], ['far'], ['far'], ['far']]
    >>> policy = ByPriority(lambda me, other: float(other == "far"), by_data=0.25, rng=Random(1))
    >>> [policy.pick("me", ["near", "far"], 1) for _ in range(4)]
    [['far'], ['near'], ['far'], ['near']]
    """

    def __init__(self, difference: Callable[[T, T], float], by_data: float, rng: Random) -> None:
        check_number("by_data", by_data, 0, 1)
        self._difference, self._by_data, self._rng = difference, by_data, rng
        self._pushes: dict[T, int] = {}
        self._last: dict[T, dict[T, int]] = {}  # at which of its pushes each peer last picked each other

    def pick(self, me: T, others: Sequence[T], k: int) -> list[T]:
        """Return `k` of the others, or all if there are no more; 0 asks for all."""
        now = self._pushes[me] = self._pushes.get(me, 0) + 1
        last = self._last.setdefault(me, {})
        chosen = list(others)
        if 0 < k < len(chosen):
            oldest = max(now - last.get(other, 0) for other in chosen)
            by_data, difference = self._by_data, self._difference

            def priority(other: T) -> float:
                age = (now - last.get(other, 0)) / oldest
                return by_data * difference(me, other) + (1 - by_data) * age

            self._rng.shuffle(chosen)
            chosen = sorted(chosen, key=priority, reverse=True)[:k]
        last.update(dict.fromkeys(chosen, now))
        return chosen

    def save(self) -> list[Any]:
        """Return the state that `restore` takes."""
        return [[me, pushes, list(self._last[me].items())] for me, pushes in self._pushes.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take over what `save` returned."""
        found = list(state)
        self._pushes = {me: pushes for me, pushes, _ in found}
        self._last = {me: dict(map(tuple, last)) for me, _, last in found}


class ByBandit(Generic[T]):
    """Those whose models have helped most, by the own validation; with probability `explore` somebody at random.

    Of whoever sent something that was merged, the gain of that merge is noted, from -1 to 1: what part of the
    validation loss it took away. What j is expected to bring is the mean of its gains, in which about the last eight
    count; nothing is expected of who has sent nothing yet. Each of the k receivers is the best that is left, or a
    random one.

    >>> policy = ByBandit(explore=0.0, rng=Random(1))
    >>> policy.reward("me", ["good"], 0.5)
    >>> policy.reward("me", ["bad", "good"], -0.1)
    >>> policy.pick("me", ["bad", "good", "new"], 2), round(policy.expected("me", "good"), 9)
    (['good', 'new'], 0.2)
    """

    def __init__(self, explore: float, rng: Random) -> None:
        check_number("explore", explore, 0, 1)
        self._explore, self._rng = explore, rng
        self._gains: dict[T, dict[T, tuple[int, float]]] = {}  # how many of each other each peer knows, and their mean

    def expected(self, me: T, other: T) -> float:
        """Return the gain that `me` expects of a model of `other`."""
        return self._gains.get(me, {}).get(other, (0, 0.0))[1]

    def reward(self, me: T, senders: Iterable[T], gain: float) -> None:
        """Note the gain of a merge, for everybody who had sent something that was in it."""
        known = self._gains.setdefault(me, {})
        for sender in dict.fromkeys(senders):
            count, mean = known.get(sender, (0, 0.0))
            known[sender] = (count + 1, mean + (gain - mean) / min(count + 1, _FOLLOWS))

    def pick(self, me: T, others: Sequence[T], k: int) -> list[T]:
        """Return `k` of the others, or all if there are no more; 0 asks for all."""
        left = list(others)
        if not 0 < k < len(left):
            return left
        random = self._rng.random
        self._rng.shuffle(left)
        left.sort(key=lambda other: self.expected(me, other), reverse=True)
        return [left.pop(int(random() * len(left)) if random() < self._explore else 0) for _ in range(k)]

    def save(self) -> list[Any]:
        """Return the state that `restore` takes."""
        return [[me, [[other, *gain] for other, gain in known.items()]] for me, known in self._gains.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take over what `save` returned."""
        self._gains = {me: {other: (count, mean) for other, count, mean in known} for me, known in state}
