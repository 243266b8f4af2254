"""Moniqua (Lu and De Sa, ICML 2020): models modulo a span, in few bits, averaged on a fixed graph.

Moniqua: Modulo Quantized Communication in Decentralized SGD, https://arxiv.org/abs/2002.11787
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_flag, check_number
from pushcen.learning import ModuloUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, Rounds, Rules, Whole


@dataclass(frozen=True)
class Moniqua(Method):
    """Neighbours are near each other, number by number: so the lowest bits of a number say which one it is.

        wait     until the messages of this round have come from all neighbours, if `rounds`
        train    d, the displacement that the event's training makes of x, the model before it is averaged
        merge    x^_j = ((q_j B - x) mod B) + x      x^_i = q_i B - (x mod B) + x
                 x <- x + gamma sum_j w_ij (x^_j - x^_i) + d
        push     q = Q((x / B) mod 1) to all neighbours

    Here z mod B is in [-B/2, B/2), B = 2 theta / (1 - 2 delta), Q rounds to the nearest of 2^bits levels, the middles
    of equal steps, and delta = 2^-(bits + 1) is the most that this moves a number. As long as |x_j - x_i| < theta, x^_j
    is within delta B of x_j. A number that is further away may wrap: it is taken for another, about B from what it is.
    No client can know; in the simulator the meter `wraps` counts distances of theta or more.

    w_ij = 1 / (1 + the larger degree of i and j). The paper's gradient is the displacement d here, and gamma its slack
    matrix for one bit. theta must cover what whole events move neighbours apart. The paper has rounds; without `rounds`
    nobody waits, and a client merges the newest message of each neighbour that has sent one since.
    """

    name: ClassVar[str] = "moniqua"
    needs_graph: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True
    needs_everybody: ClassVar[bool] = True
    meters: ClassVar[tuple[str, ...]] = ("wraps",)

    theta: float = 1.0
    """How far a neighbour's number may be from the own one, at most."""
    bits: int = 8
    """Bits a number, 1 to 8."""
    gamma: float = 1.0
    """How far a client goes towards its neighbours: below 1 where bits are few."""
    rounds: bool = True
    """Whether a client waits for all neighbours in each round, as in the paper."""

    def __post_init__(self) -> None:
        check_number("theta", self.theta, 1e-6)
        check_number("gamma", self.gamma, 0, 1, above=True)
        check_flag("rounds", self.rounds)
        self.update()

    def rules(self, place: Place) -> Rules:
        """Merge one message of each neighbour, or the newest of those that have sent one; push to all neighbours."""
        weights = place.metropolis(self, self.gamma)
        inbox = Rounds(tuple(weights.coefficients)) if self.rounds else Buffer(limit=0)
        return Rules(inbox, weights, Whole(receivers=0))

    def update(self) -> Update:
        """Train from the model before averaging; send it modulo the span."""
        return ModuloUpdate(self.bits, self.theta, UNIT)
