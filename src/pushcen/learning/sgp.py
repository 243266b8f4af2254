"""SGP's update: what training makes is added to the numerator, not to the model."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from pushcen.codec import Accumulator, Codec, Payload
from pushcen.learning.rows import row_of, trained_places, write_row
from pushcen.learning.update import CodedUpdate
from pushcen.learning.work import Work


class NumeratorStepUpdate(CodedUpdate):
    """Divides the displacement of an event by the mass that the client has, in units.

    With `overlap`, training starts from the model as it was before the messages were merged.
    """

    def __init__(self, codec: Codec, unit: int, *, overlap: bool = False) -> None:
        super().__init__(codec)
        self._unit, self._overlap = unit, overlap
        self._mass = 1.0
        self._model: nn.Module | None = None  # while an event trains
        self._old: torch.Tensor | None = None  # the model before merging, if training starts from it

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Note how much mass comes together, and merge."""
        early = 0.0 if folded is None else math.ldexp(folded.weight, folded.shift)
        self._mass = float(work.own + sum(weight for weight, _ in messages) + early) / self._unit
        self._old = row_of(self.schema, model) if self._overlap and not work.adopts else None
        super().mix(model, work, messages, folded)

    def start(self, model: nn.Module) -> None:
        """Remember the merged model; go back to the one before it, if training starts from that."""
        self._model, self._merged = model, row_of(self.schema, model)
        self._from = self._merged if self._old is None else self._old
        if self._old is not None:
            write_row(self.schema, model, self._old)

    def end(self) -> None:
        """Add what training made of the parameters to the numerator; statistics of BatchNorm move as they did."""
        model, self._model = self._model, None
        if model is None:
            return
        step = row_of(self.schema, model) - self._from
        scale = torch.where(trained_places(self.schema, model).to(step.device), 1 / self._mass, 1.0)
        write_row(self.schema, model, self._merged + scale * step)
        del self._merged, self._from
        self._old = None
