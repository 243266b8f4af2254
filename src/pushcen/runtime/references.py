"""Which references a peer holds where not all members mean well: it goes by what it has used. Names, no tensors."""

from collections.abc import Collection
from random import Random
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.references import HOLDS, LIMIT, ReferenceName, References

AHEAD = 2**20
"""By how much a generation may exceed the newest that a peer has used."""
FIRST = 2**40
"""The highest generation that is taken by a peer that has used no reference yet."""
_PATIENCE = 4  # a peer waits at most this many times as long as usual while all that comes is of no use


class ServedReferences(References):
    """References of which a peer notes which ones its messages used, and which ones they passed over for a nearer one.

    The one that it used last is never dropped; those that it passed over are dropped first, and do not count as the
    newest. A member that offers what is of no use to anybody can make others wait longer with
    their own offers, four times as long at most, and nothing else.

    >>> mine = ServedReferences("ann", renew_after=8)
    >>> good, useless = ReferenceName(3, "bob"), ReferenceName(500, "eve")
    >>> mine.hold(good, "model"), mine.hold(useless, "noise")
    (True, True)
    >>> mine.served(good, [good, useless])
    >>> mine.newest
    ReferenceName(generation=3, owner='bob')
    """

    __slots__ = ("_idle", "_passed", "last", "offered", "used")

    def __init__(self, me: str, renew_after: int) -> None:
        super().__init__(me, renew_after)
        self.used: ReferenceName | None = None  # what the last message was the difference to; None: to the start
        self.offered = 0  # the newest generation that this peer has offered itself
        self._passed: set[ReferenceName] = set()
        self._idle = 0  # steps since it offered one, or used one that was newer than all before
        self.last: ReferenceName | None = None  # the newest that was ever used

    @property
    def newest(self) -> ReferenceName | None:
        """The name of the newest reference held that was not passed over; None if there is none."""
        return next((name for name in reversed(self.held) if name not in self._passed), None)

    def hold(self, name: ReferenceName, handle: Any) -> bool:
        """Hold a reference, and drop one if there are too many; return whether this one is held."""
        if name in self.held:
            return True
        if not 0 < name.generation < LIMIT:
            raise ProtocolError(f"generation = {name.generation!r:.40}: must be a whole number from 1 to 2**62 - 1")
        if self.lacks(name):
            self._wait = 0
        kept = dict(sorted({**self.held, name: handle}.items()))
        if len(kept) > HOLDS:
            del kept[self._spare(kept, name)]
        self.held, self._passed = kept, self._passed & kept.keys()
        return name in kept

    def keeps(self, name: ReferenceName) -> bool:
        """Return whether `hold` would keep a reference."""
        return len(self.held) < HOLDS or self._spare([*self.held, name], name) != name

    def follows(self, name: ReferenceName) -> bool:
        """Return whether a generation is near enough to what was used: so the numbers never run out."""
        return name.generation <= (FIRST if self.last is None else self.last.generation + AHEAD)

    def useless(self, name: ReferenceName) -> bool:
        """Return whether a reference was passed over."""
        return name in self._passed

    def served(self, chosen: ReferenceName | None, candidates: Collection[ReferenceName]) -> None:
        """Note which of the candidates a message was the difference to (None: the start)."""
        self._passed = ({*self._passed, *candidates} & self.held.keys()) - {chosen}
        self.used = chosen
        if chosen is not None and (self.last is None or self.last < chosen):
            self._idle, self.last = 0, chosen

    def due(self, rng: Random, steps: int) -> ReferenceName | None:
        """Count the steps of a compute event; return the name under which to offer the own model now, or None.

        If nothing newer was of use for a long time, it waits no longer, whatever came.
        """
        self._idle += steps
        if self._renew_after and self._idle >= _PATIENCE * self._renew_after:
            self._wait = 1
        if super().due(rng, steps) is None:
            return None
        self._idle = 0
        return ReferenceName(1 + max(self.offered, self.last.generation if self.last else 0), self._me)

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        more = {
            "used": self.used,
            "last": self.last,
            "passed": sorted(self._passed),
            "offered": self.offered,
            "idle": self._idle,
        }
        return {**super().save(), **more}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        super().restore(state)
        self.used, self.last = (state[key] and ReferenceName(*state[key]) for key in ("used", "last"))
        self._passed = {ReferenceName(*name) for name in state["passed"]}
        self.offered, self._idle = state["offered"], state["idle"]

    def _spare(self, among: Collection[ReferenceName], name: ReferenceName) -> ReferenceName:
        """Return which one makes room for `name`: one passed over, else an older one of its owner, else the oldest."""
        return min(
            (one for one in among if one != self.used),
            key=lambda one: (one not in self._passed, not (one.owner == name.owner and one < name), one),
        )
