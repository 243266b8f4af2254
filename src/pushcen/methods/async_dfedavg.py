"""Async-DFedAvg: the plain mean of the own model and what waits; dense models, or those of another codec.

FedAvg with neither server nor rounds. McMahan et al.: Communication-Efficient Learning of Deep Networks from
Decentralized Data (AISTATS 2017), https://arxiv.org/abs/1602.05629
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import CodedUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, Equal, Rules, Whole


@dataclass(frozen=True)
class AsyncDFedAvg(Method):
    """The same buffer as PushCen's, all models weighed alike.

    merge    w <- (w + sum_j w_j) / (n + 1), over the n models that wait
    push     w to each of k receivers
    """

    name: ClassVar[str] = "async-dfedavg"
    title: ClassVar[str] = "Async-DFedAvg"

    receivers: int = 10
    limit: int = 16
    mass: str = "drop"
    """drop: what the bound evicts is ignored; keep: it is folded into the next mean."""
    newest_only: bool = True
    codec: str = "dense"
    """How models are sent: dense, centroids, lean, or `module:Class`."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Weigh the newest model of each sender alike."""
        return Rules(Buffer(self.limit, self.mass, self.newest_only), Equal(), Whole(self.receivers))

    def update(self) -> Update:
        """Train plainly; send by the codec."""
        return CodedUpdate(codec_named(self.codec))
