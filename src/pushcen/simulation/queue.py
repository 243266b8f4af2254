"""The event queue: pseudo-time, in one total order."""

import heapq
from typing import Any

DELIVER, ANSWER, PRESENCE, COMPUTE, LOOK = range(5)
"""What comes first at the same moment: messages, answers, who is there, compute events; last, looking at it all."""

Entry = tuple[float, int, int, str, Any]


class Queue:
    """Events, ordered by (time, priority, sequence): of two at the same moment the more urgent, or the older, is first.

    >>> queue = Queue()
    >>> queue.put(1.0, COMPUTE, "train", 3)
    >>> queue.put(1.0, DELIVER, "deliver", 4)
    >>> queue.pop()
    (1.0, 'deliver', 4)
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

    def put(self, time: float, priority: int, kind: str, data: Any) -> None:
        """Let an event happen at `time`."""
        self._sequence += 1
        heapq.heappush(self._heap, (time, priority, self._sequence, kind, data))

    def pop(self) -> tuple[float, str, Any]:
        """Take the first event out."""
        time, _, _, kind, data = heapq.heappop(self._heap)
        return time, kind, data

    def entries(self) -> list[Entry]:
        """Give all events, in order."""
        return sorted(self._heap, key=lambda entry: entry[:3])

    def save(self) -> dict[str, Any]:
        """Give everything, for `restore`."""
        return {"entries": self.entries(), "sequence": self._sequence}

    def restore(self, entries: list[Entry], sequence: int) -> None:
        """Take over what `save` gave; what is in order is a heap."""
        self._heap, self._sequence = list(entries), sequence
