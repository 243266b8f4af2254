"""PushCen-ADFL (KDD '26): push-sum over centroids, with a regulariser that keeps weights near them."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.codec.clustering import Profile
from pushcen.learning import CentroidUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, Rules
from pushcen.protocol import rules as protocol


@dataclass(frozen=True)
class PushCen(Method):
    """Centroids and short indices on the wire, weighed by mass.

    Variants: `strength = 0` has no regulariser, `mask = false` no mask, `newest_only = false` no buffer of the newest.
    The paper to the letter: `profile = "paper"`, `mass = "drop"`, `join_mass = true`,
    `full_after = 0`, `strength = 0.1`, `feedback = false`.
    """

    name: ClassVar[str] = "pushcen"

    clusters: int = 32
    """Centroids a layer (K)."""
    strength: float = 0.01
    """Of the centroid regulariser (lambda); 0 turns it off."""
    scale: str = "sum"
    """sum: lambda weighs a layer's sum of squares; mean: their mean."""
    mask: bool = True
    """Whether pruned weights stay zero during training."""
    profile: Profile = "default"
    """default: the best centroids; paper: three iterations from the dictionary, as its authors ran."""
    feedback: bool = True
    """Whether what rounding takes off a push is added to the next."""
    receivers: int = 10
    """How many peers get each push (k)."""
    limit: int = 16
    """How many messages may wait (L); 0 means no bound."""
    mass: str = "keep"
    """keep: all mass is kept; drop: what the buffer drops is lost, as in the paper's Algorithm 5."""
    newest_only: bool = True
    """Whether a sender's newer model replaces its older one."""
    join_mass: bool = False
    """Whether who joins late brings a unit of mass, with an untrained model."""
    full_after: int = 5
    """Steps of training after which a push splits mass evenly; after fewer, more is kept. 0: always evenly."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Push-sum."""
        buffer = Buffer(self.limit, self.mass, self.newest_only)
        return protocol.pushcen(buffer, self.receivers, UNIT if self.join_mass else 0, self.full_after)

    def update(self) -> Update:
        """Train with anchor and mask."""
        return CentroidUpdate(self.clusters, self.strength, self.scale, self.mask, self.profile, self.feedback)
