"""RASGP (Spiridonoff et al., JMLR 2020): push-sum by running sums of numerator and mass, which loss cannot hurt.

Robust Asynchronous Stochastic Gradient-Push: Asymptotically Optimal and Network-Independent Performance for Strongly
Convex Functions, https://arxiv.org/abs/1811.03982
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.codec import Dense
from pushcen.learning import RunningSumsUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, EvenSplit, Rules, Whole


@dataclass(frozen=True)
class Rasgp(Method):
    """Numerator x, mass y, and the sums X, Y of all that was ever sent of them to each of d out-neighbours.

        merge    x <- x + sum_j (X_j - X'_j)      y <- y + sum_j (Y_j - Y'_j)      z = x / y
                 with the newest sums X_j, Y_j of each in-neighbour and those that were merged before, X'_j, Y'_j
        train    d, the displacement that the event's training makes of z;   x <- x + d
        push     X <- X + x / (d + 1)      Y <- Y + y / (d + 1)      x <- x / (d + 1)      y <- y / (d + 1)
                 X and Y to all out-neighbours

    A message that is lost or late costs nothing but time: the next one has what it had. PushCen's protocol keeps such
    sums of mass alone, exactly, and sends the newest model with them.

    The paper scales a step by the time since its client's last one; here every displacement counts once. A sum is sent
    as float32: what rounding takes off it stays with its sender.
    """

    name: ClassVar[str] = "rasgp"
    title: ClassVar[str] = "RASGP"
    needs_graph: ClassVar[bool] = True
    needs_everybody: ClassVar[bool] = True

    def rules(self, place: Place) -> Rules:
        """Merge the newest sums of each sender; push to all out-neighbours."""
        return Rules(Buffer(limit=0), EvenSplit(len(place.neighbours(self))), Whole(receivers=0))

    def update(self) -> Update:
        """Keep and send running sums."""
        return RunningSumsUpdate(Dense(), UNIT)
