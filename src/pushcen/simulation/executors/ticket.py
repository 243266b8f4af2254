"""What stands for the result of a task until it is there."""

from typing import Any


class Ticket:
    """The promise of what a task makes: `facts`, small, for the simulation; a product, large, for other tasks.

    `client` and `born` say whose compute event made it, and which one of all it was: a message's staleness.
    """

    __slots__ = ("born", "client", "facts", "key")

    def __init__(self, client: int, key: int) -> None:
        self.client = client
        self.key = key  # tells tickets apart in a checkpoint
        self.born = 0
        self.facts: Any = None
