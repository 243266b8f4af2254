"""Updates that average on a graph what is sent compressed: by differences to replicas, or modulo a span.

A message moves the model by its weight, times how far its sender is from this client, as both know each other.
"""

from collections.abc import Sequence

import torch
from torch import nn

from pushcen.codec import Accumulator, Codec, Modulo, Payload, Reference, decode_row, encode_row
from pushcen.learning.displacement import DisplacementUpdate
from pushcen.learning.rows import row_of, write_row
from pushcen.learning.update import CodedUpdate
from pushcen.learning.work import Payloads, State, Work


class ReplicaGossipUpdate(CodedUpdate):
    """Sends compressed differences to the replica that all neighbours have of this client (CHOCO-SGD).

    Of the neighbours' replicas only their weighted distance from the own is kept: 0 at first, since all start alike.
    `unit` is what weights are counted in.
    """

    sends_models = False

    def __init__(self, codec: Codec, unit: int) -> None:
        super().__init__(codec)
        self._unit = unit
        self._others = 0.0  # what all neighbours weigh

    def meet(self, model: nn.Module) -> None:
        """Start with the model that all start from as everybody's replica."""
        self.replica = row_of(self.schema, model).double().cpu()
        self.apart = torch.zeros_like(self.replica)

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Move the senders' replicas by what came, and the model towards all neighbours' replicas."""
        assert folded is None  # the inbox has no bound
        for weight, payload in messages:
            self.apart.add_(decode_row(payload).double(), alpha=weight / self._unit)
        self._others = 1 - work.own / self._unit
        write_row(self.schema, model, row_of(self.schema, model).double().cpu() + self.apart)

    def encode(self, model: nn.Module, towards: Sequence[Reference] = (), gives: int = 0) -> Payloads:  # noqa: ARG002
        """Make a message of how far the model is from its replica, and move that by what the message says."""
        row = row_of(self.schema, model).double().cpu()
        payload = encode_row((row - self.replica).float(), self.codecs()[0], self.schema)
        said = decode_row(payload).double()
        self.replica += said
        self.apart -= self._others * said
        return {0: payload}

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes; an event that fails does not undo the replicas of others."""
        tensors, plain = super().save(whole)
        return State({**tensors, "replica": self.replica, **({"apart": self.apart} if whole else {})}, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self.replica = state.tensors["replica"].clone()
        if "apart" in state.tensors:
            self.apart = state.tensors["apart"].clone()


class ModuloUpdate(DisplacementUpdate):
    """Sends every number modulo a span, in few bits; who is near enough knows which of all it may be (Moniqua).

    The span is as wide as distances below `theta` need, with what rounding adds. `unit` is what weights are counted in.
    """

    sends_models = False

    def __init__(self, bits: int, theta: float, unit: int) -> None:
        self._codec, self._unit = Modulo(bits), unit
        self.span = 2 * theta / (1 - 2 * self._codec.error)

    def codecs(self) -> dict[int, Codec]:
        """Send modulo the span."""
        return {0: self._codec}

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Move the model by how far each sender is, as both are after rounding."""
        super().mix(model, work, (), folded)
        row = row_of(self.schema, model).double().cpu()
        mine = self._near(decode_row(self._message(row)), row)
        moved = row.clone()
        for weight, payload in messages:
            moved.add_(self._near(decode_row(payload), row) - mine, alpha=weight / self._unit)
        write_row(self.schema, model, moved)

    def encode(self, model: nn.Module, towards: Sequence[Reference] = (), gives: int = 0) -> Payloads:  # noqa: ARG002
        """Make a message of the model."""
        return {0: self._message(row_of(self.schema, model).double().cpu())}

    def _message(self, row: torch.Tensor) -> Payload:
        spans = row / self.span
        within = spans - torch.floor(spans + 0.5)  # before float32, which has not enough digits for many spans
        return encode_row(within.float(), self._codec, self.schema)

    def _near(self, said: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        """Return the number nearest to that in `row` that a message may mean."""
        apart = said.double() - row / self.span
        return row + self.span * (apart - torch.floor(apart + 0.5))
