"""CHOCO-SGD (Koloskova et al., ICML 2019): compressed differences to replicas, averaged on a fixed graph.

Decentralized Stochastic Optimization and Gossip Algorithms with Compressed Communication,
https://arxiv.org/abs/1902.00340
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_flag, check_number
from pushcen.learning import ReplicaGossipUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, Rounds, Rules, Whole


@dataclass(frozen=True)
class Choco(Method):
    """x^_i is what all neighbours of a client i know of its model x: their replica of it. At first all are the same.

        wait     until the messages of this round have come from all neighbours, if `rounds`
        merge    x^_j <- x^_j + q_j, for each message      x <- x + gamma sum_j w_ij (x^_j - x^_i)
        train    x <- x + d, where d is the displacement that the event's training makes of x
        push     q = Q(x - x^_i)      x^_i <- x^_i + q      q to all neighbours

    w_ij = 1 / (1 + the larger degree of i and j), and Q is a codec's rounding: what it leaves out is in the next
    difference. Only sum_j w_ij (x^_j - x^_i) is kept, one row for all neighbours. Every message must arrive, once and
    in order, or replicas are wrong for good; so nothing may be lost, and nobody may come late.

    The paper has rounds, trains first, and its gradient is the displacement d here; replicas start at 0 there, and at
    the common first model here. Without `rounds` nobody waits: a client merges what has come.
    """

    name: ClassVar[str] = "choco"
    title: ClassVar[str] = "CHOCO-SGD"
    needs_graph: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True
    needs_everybody: ClassVar[bool] = True

    gamma: float = 1.0
    """How far a client goes towards its neighbours' replicas: the less, the coarser Q is."""
    codec: str = "centroids"
    """How differences are compressed (Q): centroids (5 bits a weight), lean (1 bit), dense (not at all)."""
    rounds: bool = True
    """Whether a client waits for all neighbours in each round, as in the paper."""

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0, 1, above=True)
        check_flag("rounds", self.rounds)
        self.update()

    def rules(self, place: Place) -> Rules:
        """Merge one message of each neighbour, or every message that has come; push to all neighbours."""
        weights = place.metropolis(self, self.gamma)
        inbox = Rounds(tuple(weights.coefficients)) if self.rounds else Buffer(limit=0, newest_only=False)
        return Rules(inbox, weights, Whole(receivers=0))

    def update(self) -> Update:
        """Keep replicas; send differences by the codec."""
        return ReplicaGossipUpdate(codec_named(self.codec), UNIT)
