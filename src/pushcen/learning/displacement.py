"""Updates that add an event's displacement, what training makes, to the merged model, wherever training starts from."""

from collections.abc import Sequence

import torch
from torch import nn

from pushcen.codec import Accumulator, Payload
from pushcen.learning.rows import row_of, trained_places, write_row
from pushcen.learning.update import Update
from pushcen.learning.work import Work


class DisplacementUpdate(Update):
    """Trains from the model as it was before the messages were merged, and adds the displacement to the merged one.

    With `before` false, training starts from the merged model; a subclass may scale what is added.
    """

    before = True
    _model: nn.Module | None = None  # while an event trains
    _old: torch.Tensor | None = None  # the model before merging, if training starts from it

    def scale(self) -> float:
        """Return by what the displacement of parameters is multiplied."""
        return 1.0

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Remember the model, and merge."""
        self._old = row_of(self.schema, model) if self.before and not work.adopts else None
        super().mix(model, work, messages, folded)

    def start(self, model: nn.Module) -> None:
        """Remember the merged model; go back to the one before it, if training starts from that."""
        self._model, self._merged = model, row_of(self.schema, model)
        self._from = self._merged if self._old is None else self._old
        if self._old is not None:
            write_row(self.schema, model, self._old)

    def end(self) -> None:
        """Add what training made of the parameters, scaled; statistics of BatchNorm move as they did."""
        model, self._model = self._model, None
        if model is None:
            return
        step = row_of(self.schema, model) - self._from
        scale = torch.where(trained_places(self.schema, model).to(step.device), self.scale(), 1.0)
        write_row(self.schema, model, self._merged + scale * step)
        del self._merged, self._from
        self._old = None
