"""FedKD (Wu et al., Nature Communications 2022) without its server: a teacher at home, a student that travels.

Communication-efficient federated learning via knowledge distillation, https://arxiv.org/abs/2108.13323
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_count, check_flag
from pushcen.learning import DistillationUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, ByMass, Rules, Whole


@dataclass(frozen=True)
class FedKD(Method):
    """The task's model is the teacher T, which stays at home and is what is evaluated; the student S is averaged.

        merge    S = (s S + sum_j s_j (r_j + d_j)) / (s + sum_j s_j), by push-sum's masses s
        train    T by f(T) + (KL(S, T) + h) / D and S by f(S) + (KL(T, S) + h) / D, each with the other as it is, where
                 D = f(T) + f(S), as a number, KL(P, Q) is the divergence of Q's chances of classes from P's, and h
                 the mean of (H_T - W H_S)^2, of what their last linear layers are given: W only where sizes differ,
                 and no h where shapes do, or where there is no such layer
        push     s / (k + 1) and d = SVD(S - r) to each of k receivers, r the nearest reference that all of them have

    SVD keeps the largest singular values of each weight, as few as have a share of the sum of all squares, which rises
    from `energy_start` to `energy_end` over `rise_over` events of the client. Factors travel where they are smaller.

    The paper has a server, which averages updates of students that are all the same, cuts the average, too, and knows
    which round is the last. Here an update is the difference to a reference, a student that some client had before: all
    the displacements of compute events since. Attention is not compared: not all models have any.
    """

    name: ClassVar[str] = "fedkd"

    student: str = ""
    """`module:function`, which makes a student of a teacher; empty: a copy of the teacher, as it is at first."""
    energy_start: float = 0.95
    """The share of energy that a client's first push keeps."""
    energy_end: float = 0.98
    """The share that its last ones keep."""
    rise_over: int = 50
    """After how many events of a client that is reached."""
    hidden: bool = True
    """Whether hidden states are compared, too."""
    renew_after: int = 120
    """Optimiser steps without a new reference after which a client offers one; 0: it never does."""
    receivers: int = 4
    """How many peers get each push (k)."""
    limit: int = 16
    """How many messages may wait; 0 means no bound."""

    def __post_init__(self) -> None:
        check_count("rise_over", self.rise_over, 1)
        check_count("renew_after", self.renew_after)
        check_flag("hidden", self.hidden)
        self.update()
        self.rules(Place("check"))

    @property
    def moves(self) -> int:
        """How often references move, in optimiser steps."""
        return self.renew_after

    def rules(self, place: Place) -> Rules:
        """Weigh the newest student of each sender by its mass."""
        return Rules(Buffer(self.limit), ByMass(), Whole(self.receivers), full_after=5)

    def update(self) -> Update:
        """Train teacher and student; send the student."""
        return DistillationUpdate(self.student, self.energy_start, self.energy_end, self.rise_over, self.hidden)
