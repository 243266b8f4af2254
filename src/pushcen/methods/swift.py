"""SWIFT (Bornstein et al., ICLR 2023): wait-free averaging on a fixed graph; neighbours' models stay until renewed.

Rapid Decentralized Federated Learning via Wait-Free Model Communication, https://arxiv.org/abs/2210.14026
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.methods.method import Method, Place
from pushcen.methods.per_graph import once_per_graph
from pushcen.protocol import Equal, Fixed, KeepLatest, Rules, Whole
from pushcen.protocol.graphs import swift_coefficients

_rows = once_per_graph(swift_coefficients)


@dataclass(frozen=True)
class Swift(Method):
    """Fixed coefficients from degrees; every push goes to all neighbours.

        merge    w <- c_ii w + sum_j c_ij w_j, at every `every`-th event, with the last model w_j of each neighbour
        push     w to all neighbours

    Until a neighbour has pushed, the common first model is its w_j. `swift_coefficients` has c.
    """

    name: ClassVar[str] = "swift"
    title: ClassVar[str] = "SWIFT"
    needs_graph: ClassVar[bool] = True

    every: int = 1
    """It averages at every n-th event (s)."""

    def __post_init__(self) -> None:
        KeepLatest(every=self.every)

    def rules(self, place: Place) -> Rules:
        """Weigh the last model of each neighbour by this client's row of coefficients."""
        place.neighbours(self)
        assert place.edges is not None
        row = _rows(place.edges)[place.me]
        return Rules(KeepLatest(tuple(row), place.start, self.every), Fixed(row), Whole(receivers=0))


@dataclass(frozen=True)
class SwiftRandom(Method):
    """SWIFT as PushCen's paper compares it: random receivers, equal weights, and what was received stays.

        merge    w <- (w + sum_j w_j) / (n + 1), with the last model w_j of each of n peers, at every `every`-th event
        push     w to k receivers drawn anew

    The models of the 128 peers that pushed last are kept.
    """

    name: ClassVar[str] = "swift-random"
    title: ClassVar[str] = "SWIFT, random receivers"

    receivers: int = 10
    every: int = 1

    def __post_init__(self) -> None:
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Weigh the last model of each peer alike."""
        return Rules(KeepLatest(every=self.every, limit=128), Equal(), Whole(self.receivers))
