"""AD-PSGD (Lian et al., ICML 2018): average with one neighbour at a time, while both go on computing.

Asynchronous Decentralized Parallel Stochastic Gradient Descent, https://arxiv.org/abs/1710.06952
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import ExchangeUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Ask, AtOnce, Equal, Rules


@dataclass(frozen=True)
class AdPsgd(Method):
    """Client i averages with one random neighbour j at the end of each compute event, then adds what it has trained.

        begin      v_i <- x_i
        exchange   d = x_i - x_j      x_j <- x_j + d / 2      x_i <- x_i - d / 2
        train      x_i <- x_i + the displacement that the event's training makes of v_i

    The displacement stands for the paper's gradient step. It starts from v_i, the model before averaging; others move
    x_i meanwhile, so it is added to whatever x_i has become, and overwrites nothing. Everybody is busy all the time,
    and answers all the same.

    i sends x_i, and j answers with d. Where messages take time, i does not wait: it moves by the same d when the answer
    is there. So the sum of all models stays what it is, but for training, unless an answer is lost.
    The paper averages atomically, by locks on a bipartite graph; adding differences needs neither.
    """

    name: ClassVar[str] = "ad-psgd"
    title: ClassVar[str] = "AD-PSGD"
    exchanges: ClassVar[bool] = True
    receivers: ClassVar[int] = 1

    def rules(self, place: Place) -> Rules:
        """Ask one peer, and meet half-way."""
        return Rules(AtOnce(), Equal(), Ask(self.receivers))

    def update(self) -> Update:
        """Add what training makes to what the model has become."""
        return ExchangeUpdate()
