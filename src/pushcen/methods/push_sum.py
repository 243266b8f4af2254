"""Push-sum without compression, or with a codec of one's own: what push-sum alone wins, and what compression costs."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import CodedUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, Rules
from pushcen.protocol import rules as protocol


@dataclass(frozen=True)
class PushSum(Method):
    """Models weighed by mass; dense, if no other codec is chosen."""

    name: ClassVar[str] = "push-sum"
    title: ClassVar[str] = "push-sum"

    receivers: int = 10
    limit: int = 16
    mass: str = "keep"
    newest_only: bool = True
    join_mass: bool = False
    full_after: int = 5
    codec: str = "dense"
    """How models are sent: dense, centroids, or `module:Class`."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Push-sum."""
        buffer = Buffer(self.limit, self.mass, self.newest_only)
        return protocol.pushcen(buffer, self.receivers, UNIT if self.join_mass else 0, self.full_after)

    def update(self) -> Update:
        """Train plainly; send by the codec."""
        return CodedUpdate(codec_named(self.codec))
