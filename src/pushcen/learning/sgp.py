"""SGP's update: what training makes is added to the numerator, not to the model."""

import math
from collections.abc import Sequence

from torch import nn

from pushcen.codec import Accumulator, Codec, Payload
from pushcen.learning.displacement import DisplacementUpdate
from pushcen.learning.update import CodedUpdate
from pushcen.learning.work import Work


class NumeratorStepUpdate(DisplacementUpdate, CodedUpdate):
    """Divides the displacement of an event by the mass that the client has, in units.

    With `overlap`, training starts from the model as it was before the messages were merged.
    """

    def __init__(self, codec: Codec, unit: int, *, overlap: bool = False) -> None:
        super().__init__(codec)
        self._unit, self.before = unit, overlap
        self._mass = 1.0

    def scale(self) -> float:
        """Return one over the mass."""
        return 1 / self._mass

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Note how much mass comes together, and merge."""
        early = 0.0 if folded is None else math.ldexp(folded.weight, folded.shift)
        self._mass = float(work.own + sum(weight for weight, _ in messages) + early) / self._unit
        super().mix(model, work, messages, folded)
