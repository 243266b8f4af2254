"""Which references a peer holds among members that need not mean well: what counts is what has served. Names alone."""

from collections.abc import Collection
from random import Random
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.references import HOLDS, LIMIT, ReferenceName, References

AHEAD = 2**20
"""How far a generation may be beyond the newest that a peer has used."""
FIRST = 2**40
"""The last generation that a peer takes which has used none."""
_PATIENCE = 4  # how many times longer a peer waits than it has to, if what came is of no use


class ServedReferences(References):
    """References of which a peer notes what its messages were differences to, and what they might have been.

    The one that it used last is never dropped; those that it passed over, for one that was nearer, are dropped first,
    and are not what it goes by. A member that offers what is of no use to anybody can make others wait longer with
    their own offers, four times as long at most, and nothing else.

    >>> mine = ServedReferences("ann", every=8)
    >>> good, useless = ReferenceName(3, "bob"), ReferenceName(500, "eve")
    >>> mine.hold(good, "model"), mine.hold(useless, "noise")
    (True, True)
    >>> mine.served(good, [good, useless])
    >>> mine.newest
    ReferenceName(generation=3, owner='bob')
    """

    __slots__ = ("_idle", "_passed", "last", "offered", "used")

    def __init__(self, me: str, every: int) -> None:
        super().__init__(me, every)
        self.used: ReferenceName | None = None  # what the last message was the difference to; None: to the start
        self.offered = 0  # the newest generation that this peer has offered itself
        self._passed: set[ReferenceName] = set()
        self._idle = 0  # steps since it offered one, or used one that was newer than all before
        self.last: ReferenceName | None = None  # the newest that was ever used

    @property
    def newest(self) -> ReferenceName | None:
        """The newest that is held and was not passed over."""
        return next((name for name in reversed(self.held) if name not in self._passed), None)

    def hold(self, name: ReferenceName, handle: Any) -> bool:
        """Hold a reference, for which another may have to go; return whether it is held."""
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
        """Return whether a generation is not so far ahead that the numbers could ever run out."""
        return name.generation <= (FIRST if self.last is None else self.last.generation + AHEAD)

    def useless(self, name: ReferenceName) -> bool:
        """Return whether a reference was passed over."""
        return name in self._passed

    def served(self, chosen: ReferenceName | None, candidates: Collection[ReferenceName]) -> None:
        """Note what a message was the difference to (None: the start), of what it might have been."""
        self._passed = ({*self._passed, *candidates} & self.held.keys()) - {chosen}
        self.used = chosen
        if chosen is not None and (self.last is None or self.last < chosen):
            self._idle, self.last = 0, chosen

    def due(self, rng: Random, steps: int) -> ReferenceName | None:
        """Count the steps of an event; return under which name this peer offers its model now, if it does: a new one.

        After long with nothing newer that was of use, it does not wait any more, whatever came.
        """
        self._idle += steps
        if self._every and self._idle >= _PATIENCE * self._every:
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
        """Return which one has to go for `name`: one that was passed over, an older one of its owner, or the oldest."""
        return min(
            (one for one in among if one != self.used),
            key=lambda one: (one not in self._passed, not (one.owner == name.owner and one < name), one),
        )
