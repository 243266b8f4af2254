"""D-PSGD (Lian et al., NeurIPS 2017): averaging in rounds on a fixed graph; everybody waits for the neighbours.

Can Decentralized Algorithms Outperform Centralized Algorithms? A Case Study for Decentralized Parallel Stochastic
Gradient Descent, https://arxiv.org/abs/1705.09056
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import DisplacementUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Rounds, Rules, Whole


@dataclass(frozen=True)
class DPsgd(Method):
    """The reference with rounds: what waiting for the slowest costs shows in pseudo-time.

        wait     until the models x_j of this round have come from all neighbours
        train    d, the displacement that the event's training makes of x, the model before it is averaged
        merge    x <- w_ii x + sum_j w_ij x_j + d
        push     x to all neighbours

    w_ij = 1 / (1 + the larger degree of i and j), and w_ii the rest. In the first round all have the same model, and
    nobody waits. A client whose neighbours are slow computes nothing meanwhile; it may be one round ahead of each, so
    in the end all go at the pace of the slowest. The paper's gradient is the displacement d here.
    """

    name: ClassVar[str] = "d-psgd"
    title: ClassVar[str] = "D-PSGD"
    needs_graph: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True
    needs_everybody: ClassVar[bool] = True

    @property
    def rounds(self) -> bool:
        """Whether a client waits for its neighbours: always."""
        return True

    def rules(self, place: Place) -> Rules:
        """Weigh one model of each neighbour, when all of them are there."""
        weights = place.metropolis(self)
        return Rules(Rounds(tuple(weights.coefficients)), weights, Whole(receivers=0))

    def update(self) -> Update:
        """Train from the model before averaging; send dense models."""
        return DisplacementUpdate()
