"""Epidemic Learning, EL-Local (de Vos et al., NeurIPS 2023): every push goes to a few peers drawn anew among all.

Epidemic Learning: Boosting Decentralized Learning with Randomized Communication, https://arxiv.org/abs/2310.01972
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_count
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, Equal, Rules, Whole


@dataclass(frozen=True)
class Epidemic(Method):
    """The mean of the own model and of whoever has sent one; dense models to s random peers.

        merge    w <- (w + sum_j w_j) / (n + 1), over the n peers that have sent since the last event
        train    w <- w + d, where d is the displacement that the event's training makes
        push     w to s peers drawn anew among all

    The paper has rounds: all train, then all send, then all average. Here the average comes before the next training,
    of what has arrived by then; of a peer that has sent several models since, the newest counts. There is no bound to
    how many wait.
    """

    name: ClassVar[str] = "epidemic"
    title: ClassVar[str] = "Epidemic (EL-Local)"
    draws_anew: ClassVar[bool] = True

    receivers: int = 7
    """How many peers get each push (s): about log2 of their number, in the paper."""

    def __post_init__(self) -> None:
        check_count("receivers", self.receivers, 1)

    def rules(self, place: Place) -> Rules:
        """Weigh the newest model of each sender alike, however many there are."""
        return Rules(Buffer(limit=0), Equal(), Whole(self.receivers))
