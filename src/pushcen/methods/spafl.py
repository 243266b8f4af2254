"""SpaFL (Kim et al., NeurIPS 2024) without its server: filters are pruned by thresholds, and only these are sent.

SpaFL: Communication-Efficient Federated Learning with Sparse Models and Low Computational Overhead,
https://arxiv.org/abs/2406.00431
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_count
from pushcen.learning import ThresholdUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, Equal, Rules, Whole


@dataclass(frozen=True)
class SpaFL(Method):
    """Weights w stay at home. A filter i, an output channel or a row of a linear layer, has a threshold t_i, first 0.

        merge    t <- (t + sum_j t_j) / (n + 1), over the n peers that have sent since the last event
                 w_i <- w_i - sign(sum w_i) (t_i - t'_i) / q, with the thresholds t' of the merge before, and q the
                 inputs of a linear layer, or the area of a kernel; only if somebody has sent
        train    w and t by minimising f(w m) + alpha sum_i exp(-t_i), where m_i is 1 if mean |w_i| >= t_i, and else 0
                 the gradient of t_i is -<g_i, w_i> - alpha exp(-t_i), that of w_i is m_i g_i, with g that of f at w m
        push     t to each of k receivers

    So w is pruned wherever it is used, for evaluation and export, too, and what was pruned can come back. Biases and
    all other layers stay as they are, at home. A layer that would keep a hundredth of its filters, or none, begins
    again with t = 0, as in the authors' code. The optimiser of the weights trains thresholds, too.

    The paper has a server, and rounds: t - t' is what one round makes of everybody's thresholds, and all clients move
    by the same. Here it is what a client's own merge makes of those that it has heard.
    """

    name: ClassVar[str] = "spafl"

    strength: float = 0.002
    """Of the penalty which makes thresholds grow (alpha); 0: they follow the loss alone."""
    receivers: int = 10
    """How many peers get each push (k)."""

    def __post_init__(self) -> None:
        check_count("receivers", self.receivers, 1)
        self.update()

    def rules(self, place: Place) -> Rules:
        """Weigh the newest thresholds of each sender alike, however many there are."""
        return Rules(Buffer(limit=0), Equal(), Whole(self.receivers))

    def update(self) -> Update:
        """Train with thresholds; send these alone."""
        return ThresholdUpdate(self.strength)
