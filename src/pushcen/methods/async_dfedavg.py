"""Async-DFedAvg: the plain mean of the own model and what waits; dense models, or those of another codec."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import CodedUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, Rules
from pushcen.protocol import rules as protocol


@dataclass(frozen=True)
class AsyncDFedAvg(Method):
    """The same buffer as PushCen's, all models weighed alike."""

    name: ClassVar[str] = "async-dfedavg"
    title: ClassVar[str] = "Async-DFedAvg"

    receivers: int = 10
    limit: int = 16
    mass: str = "drop"
    """drop: what the bound evicts is let go by; keep: it is folded into the next mean."""
    newest_only: bool = True
    codec: str = "dense"
    """How models are sent: dense, centroids, or `module:Class`."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Average what waits."""
        return protocol.async_dfedavg(Buffer(self.limit, self.mass, self.newest_only), self.receivers)

    def update(self) -> Update:
        """Train plainly; send by the codec."""
        return CodedUpdate(codec_named(self.codec))
