"""The life of a peer: meet others, train and push, answer; then stop, or leave.

Training runs in a thread of its own. It waits for no neighbour: who has not answered a hello by the end of an event,
and a short patience, is left out of that push.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from pushcen.client import Client
from pushcen.errors import LearningError, ModelError, PayloadError
from pushcen.learning import Outcome, Score, State, Work
from pushcen.protocol import UNIT, Contact, epoch_of
from pushcen.runtime.neighbours import Neighbours
from pushcen.runtime.node import Node
from pushcen.runtime.records import farewell_fields
from pushcen.runtime.store import File, Store
from pushcen.runtime.wire import Signed

_TICK = 0.2
_SERVE_EVERY = 1.0


class Trained(NamedTuple):
    """What the training thread made of an event, tensors already on disk."""

    outcome: Outcome
    plain: dict[str, Any]
    files: dict[str, File]
    score: Score | None
    seconds: float


class Driver:
    """Drives one node from start to end."""

    def __init__(self, node: Node, join: Sequence[str], revoked: Path | None = None) -> None:
        self.node = node
        self.neighbours = Neighbours(node)
        self._join = list(join)
        self._revoked = revoked
        self._revoked_time = 0.0
        self._trainer = ThreadPoolExecutor(1, "trainer")
        self._last_event = -1e9
        self._metrics = node.store.folder / "metrics.jsonl"

    async def run(self, events: int | None = None, *, leave: bool = False) -> None:
        """Live until told to stop; train for so many compute events in all, and answer others after that."""
        node = self.node
        background = [asyncio.create_task(work) for work in (self._meet(), self._gossip())]
        stop: asyncio.Task[Any] = asyncio.create_task(node.stopping.wait())
        life = asyncio.create_task(self._live(events, leave))
        try:
            await asyncio.wait([stop, life, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in (life, *background):
                if task.done() and not task.cancelled() and task.exception():
                    raise task.exception()  # type: ignore[misc]
        finally:
            for task in (stop, life, *background):
                task.cancel()
            await asyncio.gather(stop, life, *background, return_exceptions=True)

    async def close(self, grace: float) -> bool:
        """Hang up; say whether the training thread has ended, too. Its event is undone: nothing of it is durable."""
        await self.neighbours.close()
        self._trainer.shutdown(wait=False, cancel_futures=True)
        idle = asyncio.get_running_loop().run_in_executor(None, self._trainer.shutdown)
        done, _ = await asyncio.wait([idle], timeout=grace)
        return bool(done)

    async def _live(self, events: int | None, leave: bool) -> None:
        node, settings = self.node, self.node.settings
        leave = leave or (node.peer.status == "leaving" and not node.stale)
        if node.peer.boot > 1 and node.members.all:  # a copy of an older state is found out before it pushes anything
            await asyncio.wait([self.neighbours.ask(name) for name in node.members.all], timeout=settings.hello_timeout)
        waited = node.now
        while len(node.members.online()) < settings.start_with and node.now - waited < settings.start_timeout:
            await asyncio.sleep(_TICK)
        node.log.say("training begins", neighbours=len(node.members.online()), events=node.peer.events)
        served = node.now
        while not (leave or node.leaving.is_set()):
            if node.stale:
                await self._renew()
            elif events is None or node.client.learner.events < events:
                await self._event()
            else:
                await asyncio.sleep(_TICK)
                if node.now - served > _SERVE_EVERY:
                    served = node.now
                    await self._serve()
        await self._leave()

    # training
    async def _event(self) -> None:
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
            trained = await loop.run_in_executor(self._trainer, self._train, work)
        except (LearningError, ModelError, PayloadError) as error:
            await self._recover(error)
            return
        if asked and not all(task.done() for task in asked):
            await asyncio.wait(asked, timeout=node.settings.patience)
        if node.stale:
            return  # what was trained is kept; who this is, is not
        fresh = [(contact, part) for name, part in chosen if (contact := self._fresh(name, begun))]
        parts = [] if node.peer.rules.weights.moves_mass else [part for _, part in fresh]
        envelopes = node.client.finish([contact for contact, _ in fresh], trained.outcome.payloads, parts)
        await node.commit(trained.plain, trained.files)
        self.neighbours.send(envelopes)
        self._report(work, trained, begun)

    def _train(self, work: Work) -> Trained:
        """Merge, train, encode, and write the tensors to new files: all that takes long, in the trainer's thread."""
        settings, learner = self.node.settings, self.node.client.learner
        begin = time.perf_counter()
        outcome = self.node.client.step(work)
        seconds = time.perf_counter() - begin
        number, every = learner.events, settings.evaluate_every
        score = learner.evaluate() if every and (number % every == 0 or number == 1) else None
        optimiser = bool(settings.optimiser_every) and number % settings.optimiser_every == 0
        state = learner.save(whole=False, optimiser=optimiser)
        return Trained(outcome, state.plain, write_tensors(self.node.store, state), score, seconds)

    def _fresh(self, name: str, begun: float) -> Contact | None:
        """Give the contact of a peer that has answered since the event began."""
        member = self.node.members.all.get(name)
        return member.contact if member and not member.failures and member.answered >= begun else None

    async def _recover(self, error: Exception) -> None:
        """Go back to the last commit, in a new boot: what was waiting comes again, with newer models."""
        node = self.node
        node.metrics.failed_events.inc()
        node.log.warn("a compute event failed", text=str(error))
        saved = node.store.load()
        plain = {"peer": saved["peer"], "learner": saved["learner"], "rng": saved["rng"]}
        node.client = Client.restore(State(node.store.tensors(), plain), node.client.learner, node.peer.rules)
        node.reapply()
        await node.commit()
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
        with self._metrics.open("a") as file:
            file.write(json.dumps(row) + "\n")

    # the network
    async def _meet(self) -> None:
        """Say hello to those whose time has come; alone, start from all known addresses again, and else now and then
        from one of them, so that a network that was cut in two grows together again.
        """
        node = self.node
        wait, next_join = node.settings.retry_first, 0.0
        while True:
            for name in node.members.due(node.now):
                self.neighbours.ask(name)
            if node.now >= next_join:
                alone = not node.members.online()
                addresses = {*self._join, *node.members.lost.values()} - {
                    node.address,
                    *node.members.addresses().values(),
                }
                wait = min(2 * wait, node.settings.retry_last) if alone else node.settings.retry_last
                next_join = node.now + wait
                tried = sorted(addresses) if alone else node.rng.sample(sorted(addresses), min(1, len(addresses)))
                await asyncio.gather(*map(self._greet, tried))
            await self.neighbours.tidy()
            await asyncio.sleep(_TICK)

    async def _greet(self, address: str) -> None:
        node = self.node
        hello = await self.neighbours.greet(address)
        if hello is not None:
            name = hello.peer.rpartition("/")[0]
            if name != node.identity.name and node.members.meet(name, address, node.now, node.owed):
                await self.neighbours.ask(name)

    async def _gossip(self) -> None:
        """Exchange news with a random neighbour now and then; spread lasting records at once."""
        node = self.node
        last = node.now - node.settings.gossip_every
        while True:
            self._read_revoked()
            online = [member.name for member in node.members.online()]
            if node.unheard:
                node.unheard.clear()
                await node.commit()
                await asyncio.gather(*(self.neighbours.gossip(name) for name in online))
            elif online and node.now - last > node.settings.gossip_every:
                last = node.now
                await self.neighbours.gossip(node.rng.choice(online))
            await asyncio.sleep(_TICK)

    def _read_revoked(self) -> None:
        """Take over a list of revoked certificates that an operator put into the folder of certificates."""
        try:
            if self._revoked is not None and (changed := self._revoked.stat().st_mtime) != self._revoked_time:
                self._revoked_time = changed
                self.node.keep(Signed.FromString(self._revoked.read_bytes()))
        except Exception as error:  # an operator may be half-way through copying it
            self.node.log.seldom("revoked", "cannot read the list of revoked certificates", text=repr(error))

    async def _serve(self) -> None:
        """Serve links in doubt while there is no training that would do so."""
        node = self.node
        there = {member.contact.peer for member in node.members.online() if member.contact}
        if there.isdisjoint(node.peer.unsettled):
            return
        payloads = await asyncio.get_running_loop().run_in_executor(self._trainer, node.client.learner.encode)
        envelopes = node.peer.serve(payloads, len(node.peer.unsettled))
        await node.commit()
        self.neighbours.send([envelope for envelope in envelopes if envelope.receiver in there])

    # coming and going
    async def _renew(self) -> None:
        """Go on in a new epoch, with no mass and the model as it is."""
        node, learner = self.node, self.node.client.learner
        old = node.peer
        epoch = max(epoch_of(old.me) + 1, time.time_ns() // 1_000_000)
        state = learner.save(whole=False)
        learner.restore(state)  # without what was folded, which was the old epoch's
        node.client = Client(old.renewed(epoch), learner, node.client.rng)
        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(self._trainer, write_tensors, node.store, state)
        await node.commit(state.plain, files)
        node.stale = ""
        node.log.warn("a new epoch", before=old.me, now=node.peer.me, hint=f"pushcen forget {old.me}")

    async def _leave(self) -> None:
        """Give all mass away and see it arrive; then this peer is gone."""
        node = self.node
        if node.peer.status == "open":
            farewell = node.peer.leave()
            await node.commit()
            node.log.say("leaving", held=node.peer.held / UNIT)
        else:
            farewell = node.peer.farewell()
        record = node.identity.sign(farewell_fields(farewell))
        node.keep(record)
        payloads = await asyncio.get_running_loop().run_in_executor(self._trainer, node.client.learner.encode)
        served = -1e9
        while not node.peer.gone:
            online = node.members.online()
            await asyncio.gather(*(self.neighbours.ask(member.name) for member in online))
            heirs = [member.contact for member in node.members.online() if member.contact]
            if (node.peer.held and heirs) or (node.peer.unsettled and node.now - served > _SERVE_EVERY):
                served = node.now
                envelopes = node.peer.hand_over(heirs, payloads)
                await node.commit()
                self.neighbours.send(envelopes)
            await asyncio.sleep(_TICK)
            node.measure()
        await node.commit()
        for name in [member.name for member in node.members.online()]:
            await self.neighbours.gossip(name)
        node.log.say("left", peer_id=node.peer.me)


def write_tensors(store: Store, state: State) -> dict[str, File]:
    """Write what a learner saved to new files: weights, and the optimiser's state apart, if it is there."""
    groups: dict[str, dict[str, Any]] = {"weights": {}, "optimiser": {}}
    for name, tensor in state.tensors.items():
        groups["optimiser" if name.startswith("optimiser.") else "weights"][name] = tensor.contiguous()
    return {group: store.write(group, tensors) for group, tensors in groups.items() if tensors}
