"""Updates of methods that exchange models: while a client trains, others move its model; what it trains is added."""

import math
from collections.abc import Sequence
from threading import Lock

import torch
from torch import nn

from pushcen.codec import Codec, Dense, Payload, Reference, decode_row, encode_row
from pushcen.errors import ModelError
from pushcen.learning.rows import row_of, trained_places, write_row
from pushcen.learning.update import Update
from pushcen.learning.work import Payloads, State

QUESTION, ANSWER = 0, 2**31
"""The parts of a message: the model that asks, and the difference between it and the one that answers."""
LARGEST = 2.0**58
"""What a weight may be: a quarter of what can be sent, so that differences can be, too."""


class ExchangeUpdate(Update):
    """Trains from the model as it was when the event began, and adds the displacement to what it has become since.

    A question has the model from before that. Of BatchNorm's statistics, which no displacement can be added to,
    training goes on from what they have become; and only who answers takes over some of the other's.

    `answer` and `hear` may come in another thread than an event, after `keep_apart`: then they move a copy, which the
    model itself becomes when an event begins and when it ends.
    """

    sends_models = False
    _row: torch.Tensor | None = None  # what the model is worth, while its tensors are something else
    _from: torch.Tensor | None = None  # what it was worth when the running event began
    _question: torch.Tensor | None = None  # what it was worth before the last event's displacement, if nobody has asked
    _apart = False
    _moves = 0  # since they were last counted

    def __init__(self) -> None:
        self._lock = Lock()

    def meet(self, model: nn.Module) -> None:
        """Keep the model at hand: exchanges move it between events."""
        super().meet(model)
        self._model, self._trained = model, trained_places(self.schema, model).to(next(model.parameters()).device)

    def keep_apart(self) -> None:
        """Make exchanges move a copy of the model from now on, so that they may come at any time."""
        self._row, self._apart = row_of(self.schema, self._model), True

    def take(self) -> None:
        """Remember the model that training will start from."""
        with self._lock:
            if self._row is not None:
                write_row(self.schema, self._model, self._row)
            self._from, self._question = self.worth(), None

    def put_back(self) -> None:
        """Undo `take`."""
        self._from = None

    def start(self, model: nn.Module) -> None:
        """Go back to where the event began."""
        with self._lock:
            now = self._row = self.worth()
            self._from = now if self._from is None else self._from
            write_row(self.schema, model, torch.where(self._trained, self._from, now))

    def end(self) -> None:
        """Add what training made to what the model has become."""
        with self._lock:
            now, start, self._from = self._row, self._from, None
            if now is not None and start is not None:
                trained = row_of(self.schema, self._model)
                self._row, self._question = now if self._apart else None, now
                self.displace(now, torch.where(self._trained, trained - start, trained - now))
                if self._row is not None:
                    write_row(self.schema, self._model, self._row)

    def worth(self) -> torch.Tensor:
        """Return what the model is worth now, as a row."""
        return row_of(self.schema, self._model) if self._row is None else self._row

    def become(self, row: torch.Tensor) -> None:
        """Set what the model is worth."""
        if self._row is None:
            write_row(self.schema, self._model, row)
        else:
            self._row = row

    def displace(self, row: torch.Tensor, by: torch.Tensor) -> None:
        """Become `row` plus a displacement."""
        self.become(row + by)

    def wait(self, time: float, mixing: float) -> None:
        """Advance to `time`: without a second model nothing happens."""

    def answer(self, question: Payload, share: float, momentum: float = 0.0) -> Payloads:
        """Move towards the model that asks; return the difference to it, from before."""
        asked = decode_row(question).to(self._trained.device)
        with self._lock:
            difference = asked - self.worth()
            answer = encode_row(difference.cpu(), Dense(), self.schema)  # which refuses what is not finite
            self.move(difference, share, momentum)
        return {ANSWER: answer}

    def hear(self, answer: Payload, share: float, momentum: float = 0.0) -> None:
        """Move towards the model that answered."""
        difference = decode_row(answer).to(self._trained.device)
        with self._lock:
            self.move(torch.where(self._trained, -difference, 0.0), share, momentum)

    def move(self, difference: torch.Tensor, share: float, momentum: float) -> None:  # noqa: ARG002
        """Go a share of the difference to another model."""
        self.become(self.worth() + share * difference)
        self._moves += 1

    def codecs(self) -> dict[int, Codec]:
        """Send both parts in float32."""
        return {QUESTION: Dense(), ANSWER: Dense()}

    def encode(self, model: nn.Module, towards: Sequence[Reference] = (), gives: int = 0) -> Payloads:  # noqa: ARG002
        """Make a question; refuse a model that has become too large to take part."""
        with self._lock:
            now = self.worth()
            if not float(now.abs().max()) <= LARGEST:
                raise ModelError("weights are not finite, or far too large, after its last step")
            row, self._question = now if self._question is None else self._question, None
        return {QUESTION: encode_row(row.cpu(), Dense(), self.schema)}

    def flops(self, steps: int) -> float:  # noqa: ARG002
        """Count the moves since the last event."""
        moves, self._moves = self._moves, 0
        return 2.0 * self.schema.size * moves

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes; what has moved a copy since the last event is not in it."""
        tensors, plain = super().save(whole)
        return State(
            tensors if self._from is None else {**tensors, "from": self._from}, {**plain, "moves": self._moves}
        )

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        with self._lock:
            self._row = row_of(self.schema, self._model) if self._apart else None
            self._from, self._question, self._moves = self._held(state, "from"), None, state.plain["moves"]

    def _held(self, state: State, name: str) -> torch.Tensor | None:
        return state.tensors[name].to(self._trained.device, copy=True) if name in state.tensors else None


class LocalMomentumUpdate(ExchangeUpdate):
    """Keeps a second model beside the first, with which it mixes as time goes on: A2CiD2's local momentum."""

    def meet(self, model: nn.Module) -> None:
        """Start with two that are the same, at time 0."""
        super().meet(model)
        self.second, self.time = row_of(self.schema, model), 0.0

    def wait(self, time: float, mixing: float) -> None:
        """Move both towards their mean, for the time that has passed."""
        passed, self.time = time - self.time, time
        if passed > 0:
            step = -math.expm1(-2 * mixing * passed) / 2 * (self.second - self.worth())
            self.become(self.worth() + step)
            self.second = self.second - step

    def displace(self, row: torch.Tensor, by: torch.Tensor) -> None:
        """Displace both alike."""
        super().displace(row, by)
        self._follow(self.second + by)

    def move(self, difference: torch.Tensor, share: float, momentum: float) -> None:
        """Move both, each by its own share."""
        super().move(difference, share, momentum)
        self._follow(self.second + momentum * difference)

    def _follow(self, second: torch.Tensor) -> None:
        """Set the second model; its statistics of BatchNorm are always the first's."""
        self.second = torch.where(self._trained, second, self.worth())

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes."""
        tensors, plain = super().save(whole)
        return State({**tensors, "second": self.second}, {**plain, "time": self.time})

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        second = self._held(state, "second")
        assert second is not None
        self.second, self.time = second, state.plain["time"]
