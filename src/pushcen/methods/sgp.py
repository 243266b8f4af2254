"""SGP (Assran et al., ICML 2019): stochastic gradient push; a step acts on push-sum's numerator.

Stochastic Gradient Push for Distributed Deep Learning, https://arxiv.org/abs/1811.10792
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_count, check_flag
from pushcen.learning import NumeratorStepUpdate, Update, codec_named
from pushcen.methods.method import Method, Place
from pushcen.protocol import UNIT, Buffer, ByMass, Rules, Whole


@dataclass(frozen=True)
class Sgp(Method):
    """Push-sum over numerators x = y z and masses y. Training starts from z, and its displacement d is added to x.

        merge    x <- x + sum_j x_j      y <- y + sum_j y_j      z = x / y
        train    d, the displacement that the event's training makes of z (-lr g(z), for one plain step);   x <- x + d
        push     x / (k + 1) and y / (k + 1) to each of k receivers, and to itself

    So a displacement moves z by d / y, and counts the same in the average of all, whatever mass its client has. With
    `push-sum` it is z that moves by d: a client of much mass counts for more, and one of little mass takes no longer
    steps. There is no other difference but in defaults: one receiver, every message on its own, even splits.
    With `overlap` (the paper's tau-OSGP), d is the displacement of z as it was before this merge, as if training had
    gone on while the messages were under way.

    A message holds z, and its envelope y: x is their product. The paper has rounds, and peers that take turns on an
    exponential graph; here receivers are drawn, and who computes often has little mass.
    """

    name: ClassVar[str] = "sgp"
    title: ClassVar[str] = "SGP"

    receivers: int = 1
    """How many peers get each push (k)."""
    overlap: bool = False
    """Whether training starts from the model before the merge, and its displacement is added after it."""
    limit: int = 16
    """How many messages may wait; what has to make room is merged early. 0 means no bound."""
    newest_only: bool = False
    """Whether a sender's newer model stands for the mass of its older ones, too."""
    join_mass: bool = False
    """Whether a client that joins late brings a unit of mass, with an untrained model."""
    full_after: int = 0
    """Steps of training after which a push splits mass evenly; after fewer, more is kept. 0: always evenly."""
    codec: str = "dense"
    """How models are sent: dense, centroids, lean, or `module:Class`."""

    def __post_init__(self) -> None:
        check_count("receivers", self.receivers, 1)
        check_flag("overlap", self.overlap)
        check_flag("newest_only", self.newest_only)
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Weigh every message by its mass."""
        return Rules(
            Buffer(self.limit, "keep", self.newest_only),
            ByMass(),
            Whole(self.receivers),
            join_mass=self.join_mass,
            full_after=self.full_after,
        )

    def update(self) -> Update:
        """Add what training makes to the numerator; send by the codec."""
        return NumeratorStepUpdate(codec_named(self.codec), UNIT, overlap=self.overlap)
