"""Quantized push-sum (Taheri et al., ICML 2020): compressed differences to replicas, on directed graphs.

Quantized Decentralized Stochastic Learning over Directed Graphs, https://arxiv.org/abs/2002.09964
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import ReplicaUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, EvenSplit, Rules, Whole


@dataclass(frozen=True)
class QuantizedPushSum(Method):
    """Numerator x and mass y; r is what all d out-neighbours of a client know of its share of x: their replica of it.

        merge    for each message (q_j, y_j), in order:   r_j <- r_j + q_j      x <- x + r_j      y <- y + y_j
                 z = x / y
        train    d, the displacement that the event's training makes of z;   x <- x + d
        push     q = Q(x / (d + 1) - r)      r <- r + q      q and y / (d + 1) to all out-neighbours
                 x <- x - d r      y <- y / (d + 1)

    Q is a codec's rounding. What it takes off stays in x. All replicas of a client are the same to the last bit, as
    long as every message arrives, once, in order; so nothing may be lost, and nobody may come late.

    The paper has rounds, and its replicas are of x, which the receiver divides by d + 1. Where clients act when they
    can, y moves with every message, x with it, and differences stay larger than in rounds.
    """

    name: ClassVar[str] = "quantized-push-sum"
    title: ClassVar[str] = "Quantized push-sum"
    needs_graph: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True
    needs_everybody: ClassVar[bool] = True

    codec: str = "centroids"
    """How differences are compressed (Q): centroids (5 bits a weight), lean (1 bit), or dense (not at all)."""

    def __post_init__(self) -> None:
        self.update()

    def rules(self, place: Place) -> Rules:
        """Merge every message; push to all out-neighbours."""
        inbox = Buffer(limit=0, newest_only=False)
        return Rules(inbox, EvenSplit(len(place.neighbours(self))), Whole(receivers=0))

    def update(self) -> Update:
        """Keep replicas; send differences by the codec."""
        return ReplicaUpdate(codec_named(self.codec), UNIT)
