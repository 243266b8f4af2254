"""The tensors of one client: merge, train, encode; evaluate; save and restore. Knows nothing of the protocol."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from pushcen.codec import Accumulator, Codec, Payload, accumulate, read_reference
from pushcen.codec.accumulator import Weight
from pushcen.errors import DivergenceError, ModelError
from pushcen.learning import samples as data
from pushcen.learning.evaluation import mean_loss, rehearse, score, settled
from pushcen.learning.frozen import Frozen
from pushcen.learning.held_out import gain, held_out
from pushcen.learning.loaders import batch_size, log_loader
from pushcen.learning.local_training import LocalTraining
from pushcen.learning.mistakes import all_finite
from pushcen.learning.modules import device_named, extra_state, schema_of
from pushcen.learning.noise import Noise
from pushcen.learning.optimiser_state import load_optimiser, save_optimiser
from pushcen.learning.rows import row_of
from pushcen.learning.samples import Samples
from pushcen.learning.snapshot import Snapshot
from pushcen.learning.task import Task
from pushcen.learning.training import TrainingOptions
from pushcen.learning.update import Update
from pushcen.learning.work import OFFER, Outcome, Payloads, Score, State, Work, named, part_of
from pushcen.memory import keep_freed_memory


class Learner:
    """One client's model, optimiser, data and random streams.

    A compute event is `take` (what is folded so far belongs to it), then `step`. `fold` may run meanwhile, in another
    thread. If `step` fails, the learner is of no use until it is restored from what it saved before.

    >>> task = Task(torch.nn.Linear(4, 2), (torch.randn(64, 4), torch.randint(2, (64,))))
    >>> learner = Learner(task)
    >>> outcome = learner.step(Work(own=1, models=[]))
    >>> outcome.steps, list(outcome.payloads), len(outcome.payloads[0]) == learner.sizes()[0]
    (2, [0], True)
    """

    def __init__(
        self,
        task: Task,
        update: Update | None = None,
        training: TrainingOptions = TrainingOptions(),  # noqa: B008
        *,
        client: str = "the client",
        seed: int | Sequence[int] = 0,
        validation: float = 0.0,
    ) -> None:
        task.check(client)
        self.update = update or Update()
        task = self.update.adapt(task, client)
        train = data.prepared(task.train, f"the training data of {client}")
        test = None if task.test is None else data.prepared(task.test, f"the test data of {client}", empty=True)
        *streams, holds = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(4))
        self._held_out: Samples | None = None
        if validation:
            train, self._held_out = held_out(train, validation, holds, f"the training data of {client}")
        training = replace(training, batch=batch_size(train, training.batch, TrainingOptions().batch))
        log_loader(train, training.batch, f"the training data of {client}")
        keep_freed_memory()
        self.task, self.metrics = settled(replace(task, train=train, test=test), client)
        self.measures = tuple(one.measure for one in self.metrics)
        self.training, self.client = training, client
        self.device = device_named(training.device)
        self.model = task.model.to(self.device)
        self.frozen = Frozen(self.model, client)
        shared, statistics = self.frozen.leave_out(task.share, self.model), training.batch_norm == "shared"
        self.schema = schema_of(self.model, shared, batch_norm=statistics, client=client)
        self._batches, self._clustering, drops = streams
        self._noise = Noise(self.model, int(drops.integers(2**63)))
        self.update.prepare(self.schema, training, self._clustering)
        self.update.meet(self.model)
        travel = set(map(id, self.schema.tensors(self.model)))
        self._home = [tensor for tensor in self.frozen.trained if id(tensor) not in travel]
        self._optimiser = training.optimise(self.model, client)
        self.local = LocalTraining(self.task, self.model, self.frozen.trained, training, client)
        extra_state(self.model, client)  # refuses what could not be saved
        self._open: Accumulator | None = None
        self._taken: Accumulator | None = None
        if task.metric is not None or self.task.metric != "accuracy":
            rehearse(self)
        self.events = self.failures = 0  # how many events there were, and how many of the newest in a row have failed

    @property
    def trains(self) -> bool:
        """Whether it still trains, or has given up after too many failures in a row."""
        return not 0 < self.training.give_up_after <= self.failures

    @property
    def steps(self) -> int:
        """How many optimiser steps a compute event takes."""
        return self.training.steps(self.local.samples)

    @property
    def folded(self) -> list[Accumulator]:
        """What was folded and is not merged yet, the running event's too."""
        return [into for into in (self._open, self._taken) if into is not None]

    def sizes(self) -> dict[int, int]:
        """Return the bytes of each part's payload, known before it is encoded."""
        return self.update.sizes()

    @property
    def varies(self) -> bool:
        """Whether these are only the most, and each message has a size of its own."""
        return any(codec.varies for codec in self.update.codecs().values())

    def check(self, part: int, payload: Payload, codecs: dict[int, Codec]) -> Payload:
        """Refuse a message that is not encoded as this client, by `codecs`, would; return it otherwise."""
        self.update.check(part, payload, codecs, self.client)
        return payload

    def add(self, payload: Payload, weight: Weight, into: Accumulator) -> None:
        """Add a message to a sum, with the model that it is the difference to, if it is one."""
        accumulate(payload, weight, into, reference=self.update.base(payload))

    def fold(self, weight: int, part: int, payloads: Payloads) -> None:
        """Merge a message early, into a sum that the next event takes: memory stays bounded, nothing is lost."""
        payload = self.check(part, payloads[part], self.update.codecs())
        into = self._open or Accumulator.zeros(self.schema, self.device)
        self.add(payload, weight, into)
        self._open = into
        self.update.fold(weight, payload)

    def take(self) -> None:
        """Hand what has been folded so far to the event that begins."""
        self._taken, self._open = self._open, None
        self.update.take()

    def put_back(self) -> None:
        """Undo `take`."""
        if self._taken is not None:
            if self._open is not None:
                self._taken.add(self._open)
            self._open, self._taken = self._taken, None
        self.update.put_back()

    def step(self, work: Work, *, encode: bool = True, measure: bool = False) -> Outcome:
        """Run a compute event: merge, train, encode. With `measure`, the outcome has drift and distortion, too."""
        self.frozen.check()
        held = self._held_out_loss(work)
        flops = self._merge(work)
        gained = None if held is None else gain(held, mean_loss(self, self._held_out))
        offer, before = self._offer(work), row_of(self.schema, self.model) if measure else None
        with self._noise.own():
            loss, steps = self.local.run(self._optimiser, self.update, self._batches, self.events + 1)
        self.frozen.check()
        self.events += 1
        if not all_finite(self._home if encode else self.frozen.trained):
            raise DivergenceError(f"{self.client}, event {self.events}: weights are not finite after its last step")
        payloads = self.encode(work.towards, work.gives, offer) if encode else {}
        after = row_of(self.schema, self.model) if measure else None
        return Outcome(
            payloads=payloads,
            loss=loss,
            steps=steps,
            samples=min(self.training.batch, self.local.samples) * steps,
            flops=flops + self.local.cost.total + self.update.flops(steps),
            density=self.update.density,
            drift=None if before is None or after is None else float(before.sub_(after).norm()),
            distortion=None if after is None else self._distortion(payloads, after),
            gain=gained,
        )

    def attempt(self, work: Work, *, encode: bool = True, measure: bool = False) -> Outcome:
        """Run a compute event like `step`. If it diverges, go back to before it and send that; what it merged is lost.

        After `training.give_up_after` such failures in a row it only merges, and sends that on.
        """
        number, failure = self.events + 1, ""
        if self.trains:
            before = Snapshot(self.model, self.frozen.trained, self._optimiser, self.update, self.frozen.fixed)
            try:
                outcome = self.step(work, encode=encode, measure=measure)
                self.failures = 0
                return outcome
            except DivergenceError as error:
                self._optimiser, failure, flops = before.bring_back(), str(error), self.local.cost.total
                self.failures += 1
        else:
            flops = self._merge(work)
        self.events = number
        payloads = self.encode(work.towards, work.gives, self._offer(work)) if encode else {}
        return Outcome(payloads, math.nan, 0, 0, flops, self.update.density, failure=failure, trains=self.trains)

    def encode(self, towards: Sequence[Payload] = (), gives: int = 0, offer: Payload | None = None) -> Payloads:
        """Encode the weights as they are; if the last step has spoilt them, it is an error that names the client.

        `towards` are references that all receivers have, beside the model that is offered now; `gives` is the mass that
        goes with it, if that is known.
        """
        offers = {} if offer is None else {OFFER: offer}
        references = [read_reference(payload) for payload in (*towards, *offers.values())]
        self.update.thin(self.events)
        with self._named():
            return {**self.update.encode(self.model, references, gives), **offers}

    def evaluate(self, samples: Samples | None = None, *, shared: bool = False) -> Score:
        """Score the model, or only what of it is `shared`, on the client's test data, or on other samples."""
        model = self.update.shared(self.model) if shared else self.model
        return score(self, self.task.test if samples is None else samples, model)

    def save(self, *, whole: bool = True, optimiser: bool = True) -> State:
        """Return all that training goes on from, on the same frozen part; if `whole`, with what was folded, too."""
        update = self.update.save(whole)
        extra = extra_state(self.model, self.client)
        model = {name: tensor for name, tensor in self.model.state_dict().items() if name not in extra}
        tensors = named("model", self.frozen.without_fixed(model)) | named("update", update.tensors)
        tensors |= self._noise.save()
        streams = [self._batches.bit_generator.state, self._clustering.bit_generator.state]
        plain = {"events": self.events, "streams": streams, "update": update.plain}
        plain |= {"failures": self.failures} if self.failures else {}
        plain |= {"extra": extra} if extra else {}
        plain |= {"frozen": self.frozen.base} if self.frozen.base else {}
        if optimiser:
            tensors |= named("optimiser", save_optimiser(self._optimiser, self.model))
        for name, into in (("open", self._open), ("taken", self._taken)):
            if whole and into is not None:
                tensors |= {name: into.row} | named(name, into.owed)
                plain[name] = into.plain()
        return State({name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned; the learner goes on bit for bit."""
        tensors, plain = state
        self._load(part_of("model", tensors), plain.get("frozen"), plain.get("extra", {}))
        self._optimiser = self.training.optimise(self.model, self.client)
        load_optimiser(self._optimiser, self.model, part_of("optimiser", tensors))
        self.update.restore(State(part_of("update", tensors), plain["update"]))
        self._batches.bit_generator.state, self._clustering.bit_generator.state = plain["streams"]
        self._noise.restore(tensors)
        self._open, self._taken = (
            Accumulator.restored(
                self.schema, tensors[name].to(self.device, copy=True), plain[name], part_of(name, tensors)
            )
            if name in plain
            else None
            for name in ("open", "taken")
        )
        self.events, self.failures = plain["events"], plain.get("failures", 0)

    def _load(self, saved: dict[str, torch.Tensor], base: str | None, extra: dict[str, Any]) -> None:
        """Set the model to what was saved of it; nothing is written into what is fixed."""
        fixed = self.frozen.fixed
        self.frozen.check_saved(saved, base, self.model)
        changing = {name: tensor for name, tensor in saved.items() if name not in fixed}
        found = self.model.load_state_dict(changing | extra, strict=not fixed)
        if wrong := [*found.unexpected_keys, *(name for name in found.missing_keys if name not in fixed)]:
            raise ModelError(f"{self.client}: what was saved does not fit the model: {wrong[0]} is not in both")

    def _merge(self, work: Work) -> float:
        """Let the update merge the messages and what was folded into the model; return the operations."""
        codecs = self.update.codecs()
        messages = [(weight, self.check(part, payloads[part], codecs)) for weight, part, payloads in work.models]
        into, self._taken = self._taken, None
        self.update.mix(self.model, work, messages, into)
        if work.adopts:
            self._optimiser = self.training.optimise(self.model, self.client)
            self.update.reset()
        self.update.merge(0 if work.adopts else work.own, messages)
        return 2.0 * self.schema.size * (len(messages) + (into is not None or bool(messages)))

    def _offer(self, work: Work) -> Payload | None:
        """Encode the merged model as a reference, if it is to be offered."""
        if not work.offers:
            return None
        with self._named():
            return self.update.offer(self.model)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            raise DivergenceError(f"{self.client}, event {self.events}: {error}") from error

    def _held_out_loss(self, work: Work) -> float | None:
        """Return the loss on what is held out, if anything is, and there are messages that might change it."""
        return mean_loss(self, self._held_out) if self._held_out is not None and work.models else None

    def _distortion(self, payloads: Payloads, row: torch.Tensor) -> float | None:
        """Return how far what is sent is from the model, if a model is; the model's `row` is used up."""
        if (payload := payloads.get(0)) is None or not self.update.sends_models:
            return None
        if payload.reference is None and self.update.codecs()[0].feedback:  # taken off, as when it was encoded
            payload.codec.add(self.schema, payload.body, -1, Accumulator(self.schema, row))
        else:
            sent = Accumulator.zeros(self.schema, self.device)
            self.add(payload, 1, sent)
            row = sent.total.sub_(row)
        return float(row.norm())
