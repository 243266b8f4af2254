"""Training: compute events in a thread of their own, from merging to pushing.

It waits for no neighbour: who has not answered a hello by the end of an event, and a short patience, is left out of
that push.
"""

import asyncio
import json
import logging
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from time import monotonic
from typing import NamedTuple

from pushcen.client import Client
from pushcen.errors import LearningError, ModelError, PayloadError, TaskError
from pushcen.learning import OFFER, Learner, Outcome, Payloads, Score, State, Work
from pushcen.measure import written
from pushcen.protocol import UNIT, ByBandit, Contact, Envelope, name_of
from pushcen.runtime.channels import Channels
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.exchange import Exchanging
from pushcen.runtime.facts import shares
from pushcen.runtime.offers import Plan
from pushcen.runtime.rows import NAME, rotate
from pushcen.runtime.shared import Shared
from pushcen.runtime.state_folder import File
from pushcen.runtime.track import Checkpoints

_TELL = 10  # events between two lines of the log, where none is evaluated


class Trained(NamedTuple):
    """What the training thread made of an event."""

    outcome: Outcome
    state: State
    score: Score | None
    seconds: float


class Trainer:
    """Trains one peer's client."""

    def __init__(self, me: DurablePeer, channels: Channels, shared: Shared) -> None:
        self._me, self._channels, self._shared = me, channels, shared
        self._settings, self._members = shared.settings, shared.members
        self._log, self._metrics = shared.log, shared.metrics
        self._thread = ThreadPoolExecutor(1, "trainer")
        self._last_event = -1e9
        self._told = 0.0  # when the log last said how training goes
        self._rows = me.store.folder / NAME
        self._checkpoints = Checkpoints(me.store.folder, me.learner.measures[0], shared.settings, me.track)
        self.exchanging: Exchanging | None = None  # where the method asks for answers

    async def close(self, grace: float) -> bool:
        """Return whether the thread has ended in time. Its event is undone: nothing of it is durable."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        idle = asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        done, _ = await asyncio.wait([idle], timeout=grace)
        return bool(done)

    async def encode(self, receivers: Sequence[Contact], gives: int = 0) -> Payloads:
        """Encode the model as it is, for these receivers, and for so much mass that goes with it to them."""
        plan = self._plan([name_of(contact.peer) for contact in receivers])
        gives = gives if receivers and self._me.offers is not None else 0
        make = partial(self._me.learner.encode, plan.towards, gives)
        payloads = await asyncio.get_running_loop().run_in_executor(self._thread, make)
        await self._me.served(plan, payloads)
        return payloads

    async def write(self, state: State) -> dict[str, File]:
        """Write what the learner saved to new files."""
        store = self._me.store
        return await self._shared.on_disk(self._thread, lambda: store.save(state.tensors))

    async def event(self) -> None:
        """Run one compute event, from merging to pushing."""
        me, settings = self._me, self._settings
        await asyncio.sleep(max(0.0, self._last_event + settings.pause - monotonic()))
        if me.stale:
            return
        self._last_event = begun = monotonic()
        client, rules = me.client, me.peer.rules
        work = client.begin()
        for age in _ages(work, begun):
            self._metrics.wait.observe(age)
        chosen = rules.outbox.choose(self._members.draw)
        gives = me.peer.gives(len(chosen), client.learner.steps) if me.offers is not None else 0
        plan = self._plan([name for name, _ in chosen], client.rng if gives else None)
        work = work._replace(gives=gives, towards=plan.towards, offers=plan.offer is not None)
        asked = [self._channels.ask(name) for name in {name for name, _ in chosen}]
        try:
            trained = await asyncio.get_running_loop().run_in_executor(self._thread, self._train, work)
        except (LearningError, ModelError, PayloadError) as error:
            if isinstance(error, TaskError) and not me.learner.events:
                raise  # it has never worked
            await self._recover(error)
            return
        if trained.outcome.gain is not None and isinstance(self._members.policy, ByBandit):
            self._members.policy.reward(self._members.me, work.senders, trained.outcome.gain)
        files = await self.write(trained.state)
        await self._keep_best(trained.score, files["weights"])
        payloads = {part: payload for part, payload in trained.outcome.payloads.items() if part != OFFER}
        await me.served(plan, trained.outcome.payloads)
        if asked and not all(task.done() for task in asked):
            await asyncio.wait(asked, timeout=settings.patience)
        if me.stale:
            return  # what was trained is kept; who this is, is not
        fresh = [(contact, part) for name, part in chosen if (contact := self._fresh(name, begun))]
        parts = [] if rules.weights.moves_mass else [part for _, part in fresh]
        envelopes: list[Envelope] = []

        def finished() -> Client[Learner]:
            envelopes.extend(client.finish([contact for contact, _ in fresh], payloads, parts))
            return client

        await me.commit(trained.state.plain, files, finished)  # no other commit has the one without the other
        self._checkpoints.tidy()
        if self.exchanging is not None:
            self.exchanging.asks(envelopes)
        self._channels.send(envelopes)
        self._report(work, trained, begun)

    def enough(self, events: int | None) -> str:
        """Return why there is to be no more training, after so many compute events or by the rules; empty: train on."""
        return self._checkpoints.enough(self._me.learner.events, events, time.time())

    async def _keep_best(self, score: Score | None, weights: File) -> None:
        """Keep weights that are among the best; that is durable with the commit of their event."""
        value, events = score.values[0] if score else None, self._me.learner.events
        note = partial(self._checkpoints.note, value, events, weights)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, note)
        except OSError as error:  # nothing depends on it
            self._log.seldom("best", "cannot keep its best weights", text=f"{error.strerror or error}")
        self._me.track = self._checkpoints.track.plain()

    def _train(self, work: Work) -> Trained:
        """Merge, train, encode, evaluate: all that takes long, in the trainer's thread."""
        client, settings = self._me.client, self._settings
        begin = time.perf_counter()
        outcome = client.step(work)
        seconds = time.perf_counter() - begin
        learner, every = client.learner, settings.evaluate_every
        number = learner.events
        score = learner.evaluate() if every and (number % every == 0 or number == 1) else None
        optimiser = bool(settings.optimiser_every) and number % settings.optimiser_every == 0
        state = learner.save(whole=False, optimiser=optimiser)
        return Trained(outcome, state, score, seconds)

    def _plan(self, names: Iterable[str], rng: Random | None = None) -> Plan:
        """Plan a push to peers, by the references that they were last heard to hold."""
        offers, known = self._me.offers, self._members.all
        return (
            Plan([])
            if offers is None
            else offers.plan([known[name] for name in names if name in known], rng, self._me.learner.steps)
        )

    def _fresh(self, name: str, begun: float) -> Contact | None:
        """Return the contact of a peer, if that has answered since the event began."""
        member = self._members.all.get(name)
        return member.contact if member and not member.failures and member.answered >= begun else None

    async def _recover(self, error: Exception) -> None:
        """Go back to the last commit, in a new boot: what was waiting comes again, with newer models."""
        self._metrics.failed_events.inc()
        self._shared.seen.event_failed(str(error))
        self._log.warn("a compute event failed", text=str(error))
        store, learner, rules = self._me.store, self._me.learner, self._me.peer.rules
        saved, tensors = await self._shared.on_disk(self._thread, lambda: (store.load(), store.tensors()))
        state = State(tensors, {"peer": saved["peer"], "learner": saved["learner"], "rng": saved["rng"]})
        await self._me.commit(become=lambda: Client.restore(state, learner, rules))
        learner.restore(State(tensors, saved["learner"]))  # without what was folded while that waited for the disk
        await asyncio.sleep(1.0)  # whatever caused it may be gone by then

    def _report(self, work: Work, trained: Trained, begun: float) -> None:
        metrics, outcome, peer = self._metrics, trained.outcome, self._me.peer
        metrics.events.inc()
        self._shared.seen.event(len(work.models), trained.seconds)
        metrics.training.observe(trained.seconds)
        metrics.loss.set(outcome.loss)
        score, measures = (
            trained.score,
            [one._replace(name="test_loss") if one.name == "loss" else one for one in self._me.learner.measures],
        )  # `loss` is that of training here
        names = [one.name for one in measures]
        values = dict(zip(names, score.values, strict=True)) if score else {}
        if score:
            metrics.score(values)
        self._me.measure()
        self._tell(outcome.loss, ", ".join(one.says(values[one.name]) for one in measures if one.name in values))
        ages, weights = _ages(work, begun), [model.weight for model in work.models]
        merged = zip(work.senders, shares(work.own, weights), ages, strict=False)
        self._shared.seen.facts.trained(self._me.learner.events, peer.held, merged, values.get(names[0]), outcome.loss)
        row = {
            "time": round(time.time(), 3),
            "peer": name_of(peer.me),
            "events": self._me.learner.events,
            **(values or dict.fromkeys(names)),
            "best": self._checkpoints.track.best,
            "loss": outcome.loss,
            **written(measures),
            "merged": len(work.models),
            "flops": outcome.flops,
            "staleness": sum(ages) / len(ages) if ages else None,
            "held": peer.held / UNIT,
            "waiting": peer.waiting / UNIT,
            "bytes_out": int(metrics.bytes.labels("out")._value.get()),
            "bytes_in": int(metrics.bytes.labels("in")._value.get()),
            "neighbours": len(self._members.online()),
            "unsettled": len(peer.unsettled),
            "seconds": round(trained.seconds, 4),
        }
        try:
            rotate(self._rows)
            with self._rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:  # nothing depends on it
            self._log.seldom("metrics", "cannot write its figures", text=f"{self._rows}: {error.strerror}")

    def _tell(self, loss: float, score: str) -> None:
        """Log how training goes, at every event that was evaluated, and if nothing ever is, at every tenth."""
        events, seen = self._me.learner.events, self._shared.seen
        if not score and (self._settings.evaluate_every or events % _TELL):
            return
        said = self._log.seldom(
            "trained", "trained", level=logging.INFO, events=events, score=score or "-", loss=round(loss, 4),
            pushes_from=", ".join(seen.pushed.since(self._told)) or "nobody", mass=round(self._me.peer.held / UNIT, 4),
        )  # fmt: skip
        self._told = seen.clock() if said else self._told


def _ages(work: Work, now: float) -> list[float]:
    """Return how long each of the models to merge has waited."""
    return [now - payloads.at for _, _, payloads in work.models if hasattr(payloads, "at")]
