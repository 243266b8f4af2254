"""Push-sum by numerators, for methods whose messages are no models: a client keeps x and y, and its model is x / y.

What a message brings and what is pushed are two functions of each: running sums (RASGP), or differences to replicas
(quantized push-sum).
"""

from collections.abc import Sequence

import torch
from torch import nn

from pushcen.codec import Accumulator, Codec, Payload, Reference, WithMass, decode_row, encode_row
from pushcen.errors import OptionError
from pushcen.learning.rows import row_of, trained_places, write_row
from pushcen.learning.update import Update
from pushcen.learning.work import Payloads, State, Work, named, part_of

Rows = dict[str, torch.Tensor]
"""A row of float32 for each client that has sent something, by name."""


class NumeratorUpdate(Update):
    """Keeps the numerator x, a row of float64, and the mass y. What training makes of x / y is added to x.

    `unit` is what weights are counted in: what the own model weighs, of that, is the part of an even split that stays.
    """

    sends_models = False

    def __init__(self, codec: Codec, unit: int) -> None:
        self._codec, self._unit = WithMass(codec), unit
        self._receivers = 0
        self._due = False  # whether an event has begun that has not pushed yet
        self._model: nn.Module | None = None  # while an event trains

    def receive(self, sender: str, row: torch.Tensor, mass: float) -> None:
        """Add to x and y what a message brings."""
        raise NotImplementedError

    def push(self, receivers: int) -> Payload:
        """Take from x and y what so many receivers get, if an event is over; return the message, the same for all."""
        raise NotImplementedError

    def meet(self, model: nn.Module) -> None:
        """Start with the model as numerator and a mass of 1."""
        super().meet(model)
        self.x, self.y = row_of(self.schema, model).double().cpu(), 1.0
        self._trained = trained_places(self.schema, model)

    def codecs(self) -> dict[int, Codec]:
        """Send by the codec, with a mass."""
        return {0: self._codec}

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Add what the messages bring, in the order in which they come; set the model to x / y."""
        if folded is not None:
            raise OptionError("limit: must be 0 where messages are no models: none can be merged before its event")
        for sender, (_, payload) in zip(work.senders, messages, strict=True):
            assert isinstance(payload.codec, WithMass)
            self.receive(sender, decode_row(payload), payload.codec.mass)
        write_row(self.schema, model, self.x / self.y)
        self._receivers, self._due = round(self._unit / work.own) - 1, True

    def start(self, model: nn.Module) -> None:
        """Remember where training starts."""
        self._model, self._from = model, row_of(self.schema, model)

    def end(self) -> None:
        """Add what training made to x, and so 1 / y of it to the model; of statistics of BatchNorm, all of it."""
        model, self._model = self._model, None
        if model is not None:
            step = (row_of(self.schema, model) - self._from).double().cpu()
            self.x += torch.where(self._trained, step, self.y * step)
            write_row(self.schema, model, self.x / self.y)
            del self._from

    def encode(self, model: nn.Module, towards: Sequence[Reference] = (), gives: int = 0) -> Payloads:  # noqa: ARG002
        """Push, once for each event."""
        payload = self.push(self._receivers if self._due else 0)
        self._due = False
        return {0: payload}

    def message(self, row: torch.Tensor, mass: float) -> Payload:
        """Make a message."""
        return encode_row(row, WithMass(self._codec.inner, mass), self.schema)

    def zeros(self) -> torch.Tensor:
        """Return a row of zeros."""
        return torch.zeros(self.schema.size)

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes."""
        tensors, plain = super().save(whole)
        return State({**tensors, "x": self.x}, {**plain, "y": self.y})

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self.x, self.y = state.tensors["x"].clone(), state.plain["y"]


class RunningSumsUpdate(NumeratorUpdate):
    """Sends the sums of all that it has ever sent, of x and of y: what a lost message had, the next one has, too."""

    def __init__(self, codec: Codec, unit: int) -> None:
        super().__init__(codec, unit)
        self._heard: Rows = {}  # the sums last heard from each sender
        self._masses: dict[str, float] = {}

    def meet(self, model: nn.Module) -> None:
        """Start with sums of zero."""
        super().meet(model)
        self.sent, self.sent_mass = self.zeros(), 0.0

    def receive(self, sender: str, row: torch.Tensor, mass: float) -> None:
        """Add what is new since its sums were last heard."""
        before = self._heard.get(sender)
        self.x += row.double() if before is None else row.double() - before.double()
        self.y += mass - self._masses.get(sender, 0.0)
        self._heard[sender], self._masses[sender] = row, mass

    def push(self, receivers: int) -> Payload:
        """Add an even share to the sums. What float32 rounds off them was not sent, and stays here."""
        if receivers:
            sent = (self.sent.double() + self.x / (receivers + 1)).float()
            mass = self.sent_mass + self.y / (receivers + 1)
            self.x -= receivers * (sent.double() - self.sent.double())
            self.y -= receivers * (mass - self.sent_mass)
            self.sent, self.sent_mass = sent, mass
        return self.message(self.sent, self.sent_mass)

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes."""
        tensors, plain = super().save(whole)
        plain = {**plain, "sent": self.sent_mass, "masses": dict(self._masses)}
        return State({**tensors, "sent": self.sent, **named("heard", self._heard)}, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self.sent, self.sent_mass = state.tensors["sent"].clone(), state.plain["sent"]
        self._heard = {name: row.clone() for name, row in part_of("heard", state.tensors).items()}
        self._masses = dict(state.plain["masses"])


class ReplicaUpdate(NumeratorUpdate):
    """Sends compressed differences to a replica which every receiver has of the sender, and moves what that is worth.

    The replica is of the share of x that a receiver gets. What compression takes off has not been moved, and stays.
    """

    def __init__(self, codec: Codec, unit: int) -> None:
        super().__init__(codec, unit)
        self._replicas: Rows = {}

    def meet(self, model: nn.Module) -> None:
        """Start with a replica of zeros."""
        super().meet(model)
        self.replica = self.zeros()

    def receive(self, sender: str, row: torch.Tensor, mass: float) -> None:
        """Bring the replica of the sender up to date, and add it; without mass nothing is moved."""
        before = self._replicas.get(sender)
        replica = self._replicas[sender] = row if before is None else before + row
        if mass:
            self.x += replica.double()
            self.y += mass

    def push(self, receivers: int) -> Payload:
        """Bring the own replica nearer to an even share of x, and take what it is then from x for each receiver."""
        if not receivers:
            return self.message(self.zeros(), 0.0)
        share, mass = self.x / (receivers + 1), self.y / (receivers + 1)
        payload = self.message(share.float() - self.replica, mass)
        self.replica = self.replica + decode_row(payload)
        self.x -= receivers * self.replica.double()
        self.y -= receivers * mass
        return payload

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes; an event that fails does not undo the replicas of others."""
        tensors, plain = super().save(whole)
        replicas = named("replica of", self._replicas) if whole else {}
        return State({**tensors, "replica": self.replica, **replicas}, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        self.replica = state.tensors["replica"].clone()
        self._replicas = {name: row.clone() for name, row in part_of("replica of", state.tensors).items()}
