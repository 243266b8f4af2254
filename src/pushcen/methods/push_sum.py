"""Push-sum without compression: what push-sum alone wins, and so what compression costs."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, Rules
from pushcen.protocol import rules as protocol


@dataclass(frozen=True)
class PushSum(Method):
    """Dense models, weighed by mass."""

    name: ClassVar[str] = "push-sum"

    receivers: int = 10
    limit: int = 16
    mass: str = "keep"
    newest_only: bool = True
    join_mass: bool = False
    full_after: int = 5

    def __post_init__(self) -> None:
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Push-sum."""
        buffer = Buffer(self.limit, self.mass, self.newest_only)
        return protocol.pushcen(buffer, self.receivers, UNIT if self.join_mass else 0, self.full_after)
