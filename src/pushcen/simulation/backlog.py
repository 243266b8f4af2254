"""What clients have pushed and not begun to send, where lines are narrow: withdrawn once they push something newer."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pushcen.protocol import Envelope

Message = tuple[str, str, int, int]
"""An envelope by sender, receiver, part and sequence."""


class Waiting(NamedTuple):
    """A message that waits for its sender's line."""

    begins: float
    """When it begins to leave."""
    size: int
    """Its bytes, without the reference that goes before it."""
    reference: int
    """The bytes of that; 0 if none does."""
    message: Message


class Backlog:
    """The messages of each client that wait for its line, and those that will never leave.

    >>> envelope = Envelope("ann", "bob", 0, 1, 8, None)
    >>> backlog = Backlog()
    >>> backlog.add(client=0, begins=1.0, envelope=envelope, size=100, reference=0)
    >>> [waiting.size for waiting in backlog.withdraw(client=0, now=0.5)]
    [100]
    >>> backlog.is_withdrawn(envelope), backlog.withdraw(client=0, now=0.5)
    (True, [])
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[Waiting]] = {}
        self._withdrawn: set[Message] = set()

    def add(self, client: int, begins: float, envelope: Envelope, size: int, reference: int) -> None:
        """Note a message that begins to leave at `begins`."""
        self._waiting.setdefault(client, []).append(Waiting(begins, size, reference, envelope[:4]))

    def withdraw(self, client: int, now: float) -> list[Waiting]:
        """Withdraw what has not begun to leave, and return it; forget the rest."""
        late = [waiting for waiting in self._waiting.pop(client, ()) if waiting.begins > now]
        self._withdrawn.update(waiting.message for waiting in late)
        return late

    def is_withdrawn(self, envelope: Envelope) -> bool:
        """Return whether a message that would arrive never left."""
        return envelope[:4] in self._withdrawn

    def over(self, envelope: Envelope) -> None:
        """Forget a message whose time of arrival has come."""
        self._withdrawn.discard(envelope[:4])

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"waiting": list(self._waiting.items()), "withdrawn": sorted(self._withdrawn)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self._waiting = {client: [_waiting(*one) for one in some] for client, some in state["waiting"]}
        self._withdrawn = {_message(one) for one in state["withdrawn"]}


def _waiting(begins: float, size: int, reference: int, message: Iterable[Any]) -> Waiting:
    return Waiting(begins, size, reference, _message(message))


def _message(plain: Iterable[Any]) -> Message:
    sender, receiver, part, sequence = plain
    return sender, receiver, part, sequence
