"""Push-sum without compression, or with a codec of one's own: what push-sum alone wins, and what compression costs.

Kempe, Dobra and Gehrke: Gossip-Based Computation of Aggregate Information (FOCS 2003),
https://doi.org/10.1109/SFCS.2003.1238221
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.learning import CodedUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, ByMass, Rules, Whole


@dataclass(frozen=True)
class PushSum(Method):
    """Models weighed by mass; dense, if no other codec is chosen.

        merge    S = s + sum_j s_j      w <- (s w + sum_j s_j w_j) / S
        push     S / (k + 1) to each of k receivers; s is what is left

    The options are PushCen's.
    """

    name: ClassVar[str] = "push-sum"
    title: ClassVar[str] = "push-sum"

    receivers: int = 10
    limit: int = 16
    mass: str = "keep"
    newest_only: bool = True
    join_mass: bool = False
    full_after: int = 5
    codec: str = "dense"
    """How models are sent: dense, centroids, lean, or `module:Class`."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

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
        """Train plainly; send by the codec."""
        return CodedUpdate(codec_named(self.codec))
