"""Training: compute events in a thread of their own, from merging to pushing.

It waits for no neighbour: who has not answered a hello by the end of an event, and a short patience, is left out of
that push.
"""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from pushcen.client import Client
from pushcen.errors import LearningError, ModelError, PayloadError, TaskError
from pushcen.learning import Outcome, Payloads, Score, State, Work
from pushcen.protocol import UNIT, Contact
from pushcen.runtime.channels import Channels
from pushcen.runtime.node import PeerNode
from pushcen.runtime.state_folder import File, StateFolder


class Trained(NamedTuple):
    """What the training thread made of an event."""

    outcome: Outcome
    state: State
    score: Score | None
    seconds: float


class Trainer:
    """Trains one node's client."""

    def __init__(self, node: PeerNode, neighbours: Channels) -> None:
        self.node, self.neighbours = node, neighbours
        self._thread = ThreadPoolExecutor(1, "trainer")
        self._last_event = -1e9
        self._metrics = node.store.folder / "metrics.jsonl"

    async def close(self, grace: float) -> bool:
        """Say whether the thread has ended in time. Its event is undone: nothing of it is durable."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        idle = asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        done, _ = await asyncio.wait([idle], timeout=grace)
        return bool(done)

    async def encode(self) -> Payloads:
        """Encode the model as it is."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.node.client.learner.encode)

    async def write(self, state: State) -> dict[str, File]:
        """Write what the learner saved to new files."""
        return await self.node.disk.use(self._thread, lambda: write_tensors(self.node.store, state))

    async def event(self) -> None:
        """Run one compute event, from merging to pushing."""
        node = self.node
        await asyncio.sleep(max(0.0, self._last_event + node.settings.pause - node.now))
        if node.stale:
            return
        self._last_event = begun = node.now
        work = node.client.begin()
        for _, _, payloads in work.models:
            if hasattr(payloads, "at"):
                node.metrics.wait.observe(begun - payloads.at)
        chosen = node.peer.rules.outbox.choose(node.members.draw)
        asked = [self.neighbours.ask(name) for name in {name for name, _ in chosen}]
        loop = asyncio.get_running_loop()
        try:
            trained = await loop.run_in_executor(self._thread, self._train, work)
        except (LearningError, ModelError, PayloadError) as error:
            if isinstance(error, TaskError) and not node.client.learner.events:
                raise  # it has never worked
            await self._recover(error)
            return
        files = await self.write(trained.state)
        if asked and not all(task.done() for task in asked):
            await asyncio.wait(asked, timeout=node.settings.patience)
        if node.stale:
            return  # what was trained is kept; who this is, is not
        fresh = [(contact, part) for name, part in chosen if (contact := self._fresh(name, begun))]
        parts = [] if node.peer.rules.weights.moves_mass else [part for _, part in fresh]
        envelopes = node.client.finish([contact for contact, _ in fresh], trained.outcome.payloads, parts)
        await node.commit(trained.state.plain, files)
        self.neighbours.send(envelopes)
        self._report(work, trained, begun)

    def _train(self, work: Work) -> Trained:
        """Merge, train, encode, evaluate: all that takes long, in the trainer's thread."""
        settings, learner = self.node.settings, self.node.client.learner
        begin = time.perf_counter()
        outcome = self.node.client.step(work)
        seconds = time.perf_counter() - begin
        number, every = learner.events, settings.evaluate_every
        score = learner.evaluate() if every and (number % every == 0 or number == 1) else None
        optimiser = bool(settings.optimiser_every) and number % settings.optimiser_every == 0
        state = learner.save(whole=False, optimiser=optimiser)
        return Trained(outcome, state, score, seconds)

    def _fresh(self, name: str, begun: float) -> Contact | None:
        """Give the contact of a peer that has answered since the event began."""
        member = self.node.members.all.get(name)
        return member.contact if member and not member.failures and member.answered >= begun else None

    async def _recover(self, error: Exception) -> None:
        """Go back to the last commit, in a new boot: what was waiting comes again, with newer models."""
        node = self.node
        node.metrics.failed_events.inc()
        node.log.warn("a compute event failed", text=str(error))
        saved, tensors = await node.disk.use(self._thread, lambda: (node.store.load(), node.store.tensors()))
        plain = {"peer": saved["peer"], "learner": saved["learner"], "rng": saved["rng"]}
        learner = node.client.learner
        await node.commit(become=lambda: Client.restore(State(tensors, plain), learner, node.peer.rules))
        learner.restore(State(tensors, saved["learner"]))  # without what was folded while that waited for the disk
        await asyncio.sleep(1.0)  # whatever caused it may be gone by then

    def _report(self, work: Work, trained: Trained, begun: float) -> None:
        node, outcome, peer = self.node, trained.outcome, self.node.peer
        node.metrics.events.inc()
        node.metrics.training.observe(trained.seconds)
        node.metrics.loss.set(outcome.loss)
        if trained.score:
            node.metrics.accuracy.set(trained.score.metric)
        node.measure()
        ages = [begun - payloads.at for _, _, payloads in work.models if hasattr(payloads, "at")]
        row = {
            "time": round(time.time(), 3),
            "peer": node.identity.name,
            "events": node.client.learner.events,
            "accuracy": trained.score.metric if trained.score else None,
            "loss": outcome.loss,
            "merged": len(work.models),
            "flops": outcome.flops,
            "staleness": sum(ages) / len(ages) if ages else None,
            "held": peer.held / UNIT,
            "waiting": peer.waiting / UNIT,
            "bytes_out": int(node.metrics.bytes.labels("out")._value.get()),
            "bytes_in": int(node.metrics.bytes.labels("in")._value.get()),
            "neighbours": len(node.members.online()),
            "unsettled": len(peer.unsettled),
            "seconds": round(trained.seconds, 4),
        }
        try:
            with self._metrics.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:  # nothing depends on it
            node.log.seldom("metrics", "cannot write its figures", text=f"{self._metrics}: {error.strerror}")


def write_tensors(store: StateFolder, state: State) -> dict[str, File]:
    """Write what a learner saved to new files: weights, and the optimiser's state apart, if it is there."""
    groups: dict[str, dict[str, Any]] = {"weights": {}, "optimiser": {}}
    for name, tensor in state.tensors.items():
        groups["optimiser" if name.startswith("optimiser.") else "weights"][name] = tensor.contiguous()
    return {group: store.write(group, tensors) for group, tensors in groups.items() if tensors}
