"""Which references a client holds, and when it offers a new one. A reference is a name and a handle: no tensors here.

A reference is a model that messages are differences to. Nobody is in charge of them: a client offers its own model when
it has waited long enough for somebody else to do so, and whoever pushes to a client sends its newest reference along,
if that client has none as new.
"""

from collections.abc import Collection
from random import Random
from typing import Any, NamedTuple

from pushcen.errors import ProtocolError

HOLDS = 3
"""How many references a client holds, beside the model that all started from."""
STRIDE = 8
"""How many optimiser steps sooner a client offers a reference for each time that its coin falls heads in a row."""
LIMIT = 2**62
"""Generations are below this."""


class ReferenceName(NamedTuple):
    """What a reference is called. The newest is the largest: by generation, then by the name of who offered it."""

    generation: int
    owner: str


class References:
    """What one client holds, oldest first, with a handle for each.

    After `renew_after` of its own optimiser steps with nothing newer a client offers a reference (0: never): steps, not
    compute events, since a client with little data has many short ones. So that not everybody offers at once, each
    tosses a coin until it falls tails, and waits a stride less for every head: of any number of clients a few are
    first, and the others hear of it in time. The first two waits are shorter, a half and three quarters: at the
    beginning models move fast.

    >>> mine, yours = References("ann", renew_after=60), References("bob", renew_after=60)
    >>> coin = Random(2)
    >>> [mine.due(coin, steps=10) for _ in range(3)]
    [None, None, ReferenceName(generation=1, owner='ann')]
    >>> mine.hold(ReferenceName(1, "ann"), "model"), yours.hold(ReferenceName(1, "ann"), "model")
    (True, True)
    >>> yours.newest
    ReferenceName(generation=1, owner='ann')
    """

    __slots__ = ("_me", "_renew_after", "_wait", "held")

    def __init__(self, me: str, renew_after: int) -> None:
        self.held: dict[ReferenceName, Any] = {}
        self._me, self._renew_after = me, renew_after
        self._wait = 0  # steps until an offer falls due; 0 until it is drawn

    @property
    def newest(self) -> ReferenceName | None:
        """The name of the newest reference held; None while there is only the start."""
        return next(reversed(self.held), None)

    def lacks(self, name: ReferenceName) -> bool:
        """Return whether all references held are older than `name`."""
        newest = self.newest
        return newest is None or newest < name

    def after(self, name: ReferenceName | None) -> Collection[ReferenceName]:
        """Return the names held after a push from a client whose newest is `name`: it comes along, if lacking."""
        if name is None or not self.lacks(name):
            return self.held
        return [*self.held, name][-HOLDS:]

    def hold(self, name: ReferenceName, handle: Any) -> bool:
        """Hold a reference, and drop the oldest if there are too many; return whether this one is held."""
        if name in self.held:
            return True
        if not 0 < name.generation < LIMIT:
            raise ProtocolError(f"generation = {name.generation!r:.40}: must be a whole number from 1 to 2**62 - 1")
        if self.lacks(name):
            self._wait = 0
        self.held = dict(sorted({**self.held, name: handle}.items())[-HOLDS:])
        return name in self.held

    def due(self, rng: Random, steps: int) -> ReferenceName | None:
        """Count the steps of a compute event; return the name under which to offer the own model now, or None."""
        if not self._renew_after:
            return None
        newest = self.newest
        generation = newest.generation if newest else 0
        if not self._wait:
            self._wait = max(1, self._renew_after * min(4, generation + 2) // 4)
            while self._wait > STRIDE and rng.random() < 0.5:
                self._wait -= STRIDE
        self._wait = max(0, self._wait - steps)
        if self._wait:
            return None
        return ReferenceName(generation + 1, self._me)

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"held": [[*name, handle] for name, handle in self.held.items()], "wait": self._wait}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.held = {ReferenceName(generation, owner): handle for generation, owner, handle in state["held"]}
        self._wait = state["wait"]
