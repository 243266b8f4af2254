"""PushCen-ADFL (KDD '26): push-sum over centroids, with a regulariser that keeps weights near them.

Bai, Dong and Qin: On the Push-Based Asynchronous Federated Learning: A Bias-Correction Aggregation Approach,
https://doi.org/10.1145/3770855.3817925
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.codec.clustering import Profile
from pushcen.learning import CentroidUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, ByMass, Rules, Whole


@dataclass(frozen=True)
class PushCen(Method):
    """Centroids and short indices on the wire, weighed by mass.

    A client has a model w, a mass s and a dictionary G of centroids. Of the models that wait, each came as centroids
    V_j and indices A_j, with a share s_j of its sender's mass. In each compute event:

        merge    S = s + sum_j s_j      w <- (s w + sum_j s_j V_j[A_j]) / S      G <- (s G + sum_j s_j V_j) / S
        train    minimise f(w) + lambda |w - G[A]|^2, where G[A] is w in centroids and pruned weights stay zero
        push     S / (k + 1) to each of k receivers, with V and A of w; s is what is left

    Variants: `strength = 0` has no regulariser, `mask = false` no mask, `newest_only = false` no buffer of the newest.
    The paper to the letter: `profile = "paper"`, `mass = "drop"`, `join_mass = true`, `full_after = 0`,
    `strength = 0.1`, `feedback = false`.
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
    """Whether a client that joins late brings a unit of mass, with an untrained model."""
    full_after: int = 5
    """Steps of training after which a push splits mass evenly; after fewer, more is kept. 0: always evenly."""

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
        """Train with anchor and mask."""
        return CentroidUpdate(self.clusters, self.strength, self.scale, self.mask, self.profile, self.feedback)
