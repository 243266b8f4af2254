"""PushCen with messages of about a bit a weight: push-sum over differences to references that move.

Push-sum is Kempe, Dobra and Gehrke's (FOCS 2003), https://doi.org/10.1109/SFCS.2003.1238221. How a model is sent, and
which references there are, is ours: docs/codec.md.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from pushcen.checks import check_count
from pushcen.codec import Lean
from pushcen.learning import CodedUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, ByMass, Rules, Whole


@dataclass(frozen=True)
class PushCenLean(Method):
    """A tenth of PushCen's bytes: few bits for the difference to a reference that all receivers have.

    A client has a model w, a mass s, some references r, each a model that some client had before, and e, what its
    messages so far have left out, in units of mass. In each compute event:

        merge    S = s + sum_j s_j      w <- (s w + sum_j s_j (r_j + d_j)) / S
        train    minimise f(w)
        push     m in all, S / (k + 1) to each of k receivers, with d = Q(x - r), where r is the nearest of those that
                 all receivers have, x = w + e / max(m, c M), M the usual m, c `spread`; e <- e + m (w - r - d)

    Q spends `bits` a weight, by the levels and thresholds that lower the error most, and scales its levels so that
    <d, x - r> = |x - r|^2. Without `feedback` there is no e; with `spread` = 0 levels are not scaled, x = w + e / m.
    There is no regulariser and no mask: they would hold nine weights in ten at the reference.
    """

    name: ClassVar[str] = "pushcen-lean"
    title: ClassVar[str] = "PushCen lean"

    bits: float = 0.93
    """Bits a weight, everything in a message counted: 0.05 to 4."""
    renew_after: int = 120
    """Optimiser steps without a new reference after which a client offers one; 0: it never does."""
    feedback: bool = True
    """Whether what messages leave out comes later; if not, they only leave out nothing on average."""
    spread: int = field(default=4, metadata={"before": 0})
    """Over how many pushes of the usual mass what was left out comes; 0: with the next, and levels are not scaled."""
    receivers: int = 4
    """How many peers get each push (k)."""
    limit: int = 16
    """How many messages may wait (L); 0 means no bound."""
    mass: str = "keep"
    """keep: all mass is kept; drop: what the buffer drops is lost, as in the paper's Algorithm 5."""
    newest_only: bool = True
    """Whether a sender's newer model replaces its older one."""
    join_mass: bool = False
    """Whether a client that joins late brings a unit of mass, with an untrained model."""
    full_after: int = 5
    """Steps of training after which a push splits mass evenly; after fewer, more is kept. 0: always evenly."""

    def __post_init__(self) -> None:
        check_count("renew_after", self.renew_after)
        check_count("spread", self.spread)
        self.update()
        self.rules(Place("check"))

    @property
    def moves(self) -> int:
        """How often references move, in optimiser steps."""
        return self.renew_after

    def rules(self, place: Place) -> Rules:
        """Weigh the newest model of each sender by its mass."""
        return Rules(
            Buffer(self.limit, self.mass, self.newest_only),
            ByMass(),
            Whole(self.receivers),
            join_mass=self.join_mass,
            full_after=self.full_after,
        )

    def update(self) -> Update:
        """Train plainly; send differences in few bits."""
        spread = self.spread if self.feedback else 0
        return CodedUpdate(Lean(self.bits, self.feedback and not spread), moves=True, spread=spread)
