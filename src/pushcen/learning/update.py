"""The learner's side of a method: what it does around plain local training, and what it sends.

This base is what the dense methods need: nothing, and the whole model in float32.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from pushcen.codec import (
    Accumulator,
    Centroids,
    Codec,
    Dense,
    Payload,
    Reference,
    Schema,
    TopK,
    accumulate,
    codecs,
    encode,
    payload_size,
)
from pushcen.errors import OptionError, PayloadError
from pushcen.learning.residual import Residual
from pushcen.learning.rows import row_of
from pushcen.learning.sparsity import SparsityOptions
from pushcen.learning.task import Task
from pushcen.learning.training import TrainingOptions
from pushcen.learning.work import Payloads, State, Work
from pushcen.locate import locate

LossOf = Callable[[Any, Any, nn.Module], tuple[torch.Tensor, Any]]
"""Returns the task's loss, and the outputs, of a model, for inputs and targets."""
OFFERED = Centroids(clusters=32)
"""How a model is sent that is offered as a reference: fine enough, and whole in one message."""


class Update:
    """Hooks in the order in which a compute event calls them. One object per client; it may have a state.

    `fold`, if a message has to be merged before its event, may run while the hooks of an event run in another
    thread; what it gathers belongs to the next event, from `take` on.
    """

    references: Mapping[bytes, Reference] = MappingProxyType({})
    """The models that messages may always be differences to, by fingerprint: the common start."""
    moves = False
    """Whether they may be differences to others, too, which come with them."""
    sends_models = True
    """Whether a message is a model, or a part of one, which can be compared with the model that it was made of."""
    spread = 0
    """Over how many pushes of the usual mass what messages leave out is made up for; 0: with the next, whatever its."""
    sparsity: SparsityOptions | None = None
    """How many numbers of a model messages have, if that changes: `sparse` sets it."""
    _sends: Codec = Dense()
    _residual: Residual | None = None

    @property
    def residual(self) -> Residual:
        """What the messages so far have left out of the whole model."""
        self._residual = self._residual or Residual(self.spread)
        return self._residual

    def adapt(self, task: Task, client: str) -> Task:
        """Return the task that is trained, before anything is done with it: with parameters of the method's, say."""
        return task

    def shared(self, model: nn.Module) -> nn.Module:
        """Return the model whose weights travel, as it is scored where all share one: that which trains, or a part."""
        return model

    def prepare(self, schema: Schema, training: TrainingOptions, rng: np.random.Generator) -> None:
        """Learn, once, what is shared and how it is trained; `rng` is the client's own."""
        self.schema = schema

    def meet(self, model: nn.Module) -> None:
        """See the model that all clients start from, once; keep it if a codec sends differences to it."""
        if any(codec.from_start for codec in self.codecs().values()):
            start = Reference.of(model, self.schema)
            self.references = {start.fingerprint: start}

    def fold(self, weight: int, payload: Payload) -> None:
        """Note a message that is merged early; its weights have been added already."""

    def take(self) -> None:
        """Hand what has been folded so far to the event that begins."""

    def put_back(self) -> None:
        """Undo `take`."""

    def mix(
        self, model: nn.Module, work: Work, messages: Sequence[tuple[int, Payload]], folded: Accumulator | None
    ) -> None:
        """Set the model to the mean of itself, the messages and what was folded, each by its weight.

        A method whose rule is no mean has one of its own. `work.own` is what the model weighs.
        """
        if folded is None and not messages:
            return
        into = folded or Accumulator.zeros(self.schema, next(model.parameters()).device)
        if work.own:
            into.add_model(model, work.own)
        for weight, payload in messages:
            accumulate(payload, weight, into, reference=self.base(payload))
        into.write_mean(model)

    def merge(self, own: int, messages: Iterable[tuple[int, Payload]]) -> None:
        """Note the messages that are merged now."""

    def reset(self) -> None:
        """Forget what was learnt from others and what was left out: the client adopts a model and starts afresh."""
        self._residual = None

    def start(self, model: nn.Module) -> None:
        """Look at the merged model, before training."""

    def loss(self, model: nn.Module, loss_of: LossOf, inputs: Any, targets: Any) -> torch.Tensor:
        """Return the loss that a batch is trained by; `loss_of` returns the task's, and outputs, for any model."""
        return loss_of(inputs, targets, model)[0]

    def before_step(self) -> None:
        """Change the gradients of the model that `start` saw, before the optimiser sees them."""

    def after_step(self) -> None:
        """Change the weights after the optimiser's step."""

    def one_pass(self, optimiser: Optimizer) -> Callable[[], bool] | None:
        """Return what makes a step of this event and both hooks at once, and whether it has; None if nothing does."""
        return None

    def end(self) -> None:
        """Release what only training needed."""

    def codecs(self) -> dict[int, Codec]:
        """Return how each part is encoded: 0 is the whole model."""
        return {0: self._sends}

    def thin(self, events: int) -> None:
        """Send as many numbers as the sparsity says after so many compute events, if there is one."""
        if self.sparsity is not None:
            self._sends = TopK(self.sparsity.share(events))

    def encode(self, model: nn.Module, towards: Sequence[Reference] = (), gives: int = 0) -> Payloads:
        """Make what is sent; keep what it leaves out, where the codec of the whole model wants that back.

        A codec that sends differences sends that to the nearest of the common start and `towards`. `gives` is the mass
        that is pushed, if that is known.
        """
        codecs, left = self.codecs(), None
        if 0 in codecs and (codecs[0].feedback or self.spread):
            left = self.residual.told(self.schema.size, next(model.parameters()).device, gives)
        near = self._nearest(model, towards) if any(codec.from_start for codec in codecs.values()) else None
        payloads = {
            part: encode(
                model,
                codec,
                schema=self.schema,
                reference=near if codec.from_start else None,
                left=None if part else left,
            )
            for part, codec in codecs.items()
        }
        if left is not None and (gives or not self.spread):  # what gives no mass makes up for nothing
            self.residual.note(left, gives)
        return payloads

    def offer(self, model: nn.Module) -> Payload:
        """Make a message of a model that is offered as a reference."""
        return encode(model, OFFERED, schema=self.schema)

    def _nearest(self, model: nn.Module, towards: Sequence[Reference]) -> Reference:
        """Return the reference that is nearest to a model."""
        among = [*self.references.values(), *towards]
        if len(among) == 1:
            return among[0]
        row = row_of(self.schema, model)
        return min(among, key=lambda reference: float((row - reference.row.to(row.device)).square().sum()))

    def reference(self, codec: Codec) -> Reference | None:
        """Return what a codec's messages may always be differences to."""
        return next(iter(self.references.values())) if codec.from_start else None

    def check(self, part: int, payload: Payload, codecs: dict[int, Codec], client: str) -> None:
        """Refuse a message that is not encoded as this client, by `codecs`, would: its numbers mean something else."""
        codec = codecs.get(part)
        if codec is None or payload.codec != codec:
            raise PayloadError(f"{client} got part {part} as {payload.codec}: must be {codec}")
        from_start = codec.from_start and self.sends_models
        if from_start != (payload.reference is not None) or (from_start and not self.base(payload)):
            told = f"model {payload.reference.hex()}" if payload.reference else "no model"
            must = "one that it has" if from_start else "none"
            raise PayloadError(f"{client} got the difference to {told}: must be to {must}")

    def base(self, payload: Payload) -> Reference | None:
        """Return the model that a message is the difference to; None if it is none, or that is not here."""
        if payload.reference is None:
            return None
        return self.references.get(payload.reference) or (payload.base if self.moves else None)

    def sizes(self) -> dict[int, int]:
        """Return the bytes of each part, known before it is encoded."""
        return {part: payload_size(self.schema, codec) for part, codec in self.codecs().items()}

    @property
    def density(self) -> float:
        """The share of clustered weights that the last event trained, and did not hold at zero."""
        return 1.0

    def flops(self, steps: int) -> float:
        """Count what an event of so many steps costs beside training and merging."""
        return 0.0

    def exported(self, tensors: Mapping[str, torch.Tensor], *, shared: bool = False) -> dict[str, torch.Tensor]:
        """Return the tensors of the user's own model, by its own names, out of those of the model that is trained.

        With `shared` it is the model that all clients share, where that is another one.
        """
        return dict(tensors)

    def save(self, whole: bool = True) -> State:
        """Return the state that `restore` takes; without what was folded, unless `whole`."""
        return self.residual.save()

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        self.residual.restore(state)


class CodedUpdate(Update):
    """Sends the whole model by one codec; with `moves`, as the difference to references that move."""

    def __init__(self, codec: Codec, *, moves: bool = False, spread: int = 0) -> None:
        if not codec.whole:
            raise OptionError(f"codec = {codec.name!r}: sends only a part of a model; must send all of it")
        self._sends, self.moves, self.spread = codec, moves, spread


def sparse(update: Update, sparsity: SparsityOptions | None, method: str) -> Update:
    """Make the update of a method send as many numbers of a model as `sparsity` says; refuse one that sends no models.

    >>> sparse(Update(), SparsityOptions(first=0.5), "epidemic").codecs()
    {0: TopK(share=0.5)}
    """
    if sparsity is None or not sparsity.given:
        return update
    if type(update).codecs is not Update.codecs or update._sends != Dense():
        key, value = sparsity.given
        raise OptionError(
            f"sparsity.{key} = {value!r}: {method} does not send whole dense models, from which numbers could be left "
            "out; must be 1.0"
        )
    update.sparsity = sparsity
    update.thin(0)
    return update


def codec_named(name: str) -> Codec:
    """Make the codec of this name, or of a class `module:Class` of one's own, with its default options.

    >>> codec_named("dense")
    Dense(number='float32')
    >>> codec_named("dens")
    Traceback (most recent call last):
    pushcen.errors.OptionError: codec = 'dens': there is no such codec; did you mean dense? ...
    """
    kind = locate(name, "codec") if ":" in name else codecs().get(name)
    if kind is None:
        known = [name for name in codecs() if ":" not in name]
        near = difflib.get_close_matches(name, known, 2)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise OptionError(
            f"codec = {name!r}: there is no such codec; {hint}There are {', '.join(known)}, or module:Class"
        )
    if not (isinstance(kind, type) and issubclass(kind, Codec)):
        raise OptionError(f"codec = {name!r}: {kind!r:.80} is no subclass of pushcen.codec.Codec")
    try:
        return kind()
    except TypeError as error:
        raise OptionError(f"codec = {name!r}: each of its options must have a default: {error}") from None
