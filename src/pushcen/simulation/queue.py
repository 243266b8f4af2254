"""The event queue: pseudo-time, in one total order."""

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

DELIVER, ANSWER, PRESENCE, COMPUTE, LOOK = range(5)
"""What comes first at the same moment: messages, answers, who is there, compute events; evaluation is last."""


class QueueEvent:
    """Something that happens at a moment of pseudo-time. Each part of the world has its own."""

    __slots__ = ()
    kind: ClassVar[str]
    """What it is called in a checkpoint."""
    priority: ClassVar[int]

    def happen(self, engine: "Engine") -> None:
        """Change the world."""
        raise NotImplementedError

    def save(self) -> Any:
        """Return the plain data that `load` takes."""
        raise NotImplementedError

    @classmethod
    def load(cls, data: Any) -> Self:
        """Return the event that was saved."""
        raise NotImplementedError


Entry = tuple[float, int, int, QueueEvent]


class Queue:
    """Events by (time, priority, sequence): of two at the same moment the more urgent, or the older, comes first.

    >>> class Say(QueueEvent):
    ...     def __init__(self, priority):
    ...         self.priority = priority
    >>> queue = Queue()
    >>> queue.put(1.0, Say(COMPUTE))
    >>> queue.put(1.0, Say(DELIVER))
    >>> time, event = queue.pop()
    >>> time, event.priority == DELIVER, len(queue)
    (1.0, True, 1)
    """

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_time(self) -> float:
        """The time of the first event; infinite if there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def put(self, time: float, event: QueueEvent) -> None:
        """Plan an event for `time`."""
        self._sequence += 1
        heapq.heappush(self._heap, (time, event.priority, self._sequence, event))

    def pop(self) -> tuple[float, QueueEvent]:
        """Remove and return the first event, and its time."""
        time, _, _, event = heapq.heappop(self._heap)
        return time, event

    def entries(self) -> list[Entry]:
        """Return all events, in order."""
        return sorted(self._heap, key=lambda entry: entry[:3])

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        entries = [[*place, event.kind, event.save()] for *place, event in self.entries()]
        return {"entries": entries, "sequence": self._sequence}

    def restore(self, state: dict[str, Any], kinds: Mapping[str, type[QueueEvent]]) -> None:
        """Go on from what `save` returned; what is in order is a heap."""
        self._heap = [
            (time, priority, sequence, kinds[kind].load(data))
            for time, priority, sequence, kind, data in state["entries"]
        ]
        self._sequence = state["sequence"]
