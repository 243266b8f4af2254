"""From a task, a folder of certificates and a state folder to a running peer."""

import asyncio
import contextlib
import signal
import zlib
from collections.abc import AsyncIterator
from functools import partial
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

from pushcen.client import Client
from pushcen.codec import Accumulator, Payload, read_reference
from pushcen.errors import OptionError
from pushcen.learning import Learner, State, build_task, sparse
from pushcen.methods import Place
from pushcen.protocol import UNIT, Buffer, ByBandit, Peer, epoch_of
from pushcen.runtime.changes import NewSettings, begins_anew, carry_over, check_same, follow
from pushcen.runtime.driver import Driver
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.fingerprint import describe, usual, varying
from pushcen.runtime.logs import Log
from pushcen.runtime.members import check_address
from pushcen.runtime.network import Generation, generation_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.offers import Offers
from pushcen.runtime.reach.places import local_socket, reachable
from pushcen.runtime.service import Service
from pushcen.runtime.setup import Setup, check_options
from pushcen.runtime.shared import Shared
from pushcen.runtime.state_folder import StateFolder
from pushcen.runtime.track import Track
from pushcen.runtime.views import Views, from_any_thread
from pushcen.runtime.wire import Signed

if TYPE_CHECKING:
    from pushcen.config import StalenessOptions


async def run_peer(setup: Setup, events: int | None = None, *, leave: bool = False) -> None:
    """Run a peer until it is told to stop (SIGTERM, SIGINT), or has left (`leave`, or SIGUSR1)."""
    record: Signed | None = None
    drivers: list[Driver] = []
    while True:
        try:
            async with started(setup, record) as driver:
                _obey_signals(driver)
                drivers.append(driver)
                if any(one.stopping.is_set() for one in drivers):  # it was told while it started again
                    return
                leave = leave or any(one.leaving.is_set() or one.me.peer.status == "leaving" for one in drivers[:-1])
                await driver.run(events, leave=leave)
            return
        except NewSettings as changed:
            record = changed.record


@contextlib.asynccontextmanager
async def started(setup: Setup, record: Signed | None = None) -> AsyncIterator[Driver]:
    """Start a peer: it is known who it is, that is committed, and it answers. `Driver.run` makes it live.

    With a `record` that founds the network anew it is set up as that says, and enters as soon as it lives.
    """
    for address in (*([setup.listen] if setup.listen else []), *setup.join):
        check_address(address if not address.endswith(":0") else address[:-1] + "1")
    if setup.listen:  # mistakes first: before the folder is made and the task loaded
        setup.identity.check_listen(setup.listen)
    reachable(setup.listen, setup.advertise, 0)
    proxy = setup.proxy and check_address(setup.proxy)
    store, ended, stack, shown = StateFolder(setup.state), True, contextlib.ExitStack(), contextlib.ExitStack()
    try:
        saved = store.load()
        setup, generation = follow(setup, saved, record)
        stream = Random(f"{setup.seed} {setup.identity.name}")
        client, about, saved = _client(setup, store, saved, stream, generation if record else None)
        rng = Random(stream.random())
        shared = Shared.of(setup.identity, setup.runtime, rng, proxy)
        outbox = client.peer.rules.outbox
        shared.members.keep_lines(getattr(outbox, "parts", 1) * getattr(outbox, "receivers", 0))
        if setup.neighbours is not None and setup.neighbours.policy == "bandit":
            shared.members.policy = ByBandit(setup.neighbours.explore, rng)
        if setup.staleness is not None and setup.staleness.given:
            client.weigh = partial(_weighed_by_wait, setup.staleness)
        moves = setup.method.moves
        offers = None if moves is None else Offers(setup.identity, client.learner, setup.state, moves)
        me = DurablePeer(shared, store, client, offers)
        me.settings, me.about = generation.settings, about
        me.restore(saved)
        method = setup.method
        node = PeerNode(me, shared, about, setup.listen, usual(method, about), varying(method, setup.training))
        facts = _facts(setup, about, client.peer)
        await _resume(setup, me, {} if record else facts)
        if record is not None:
            me.keep(record)
        service = Service(node, me, shared)
        local = "" if setup.listen else str(stack.enter_context(local_socket()))
        port = await service.start(setup.listen or f"unix:{local}")
        node.address = reachable(setup.listen, setup.advertise, port)
        driver = Driver(node, me, shared, setup.join, setup.certs, rng, local)
        views = Views(driver.upkeep, me, shared)
        if setup.runtime.watched:
            views.serve(service.gate)
        try:
            driver.upkeep.start()
            if setup.metrics:
                shared.metrics.serve(setup.metrics)
            driver.meeting.read_records()
            if not epoch_of(me.peer.me):
                store.commit(facts)
                await driver.epochs.begin()
            shared.seen.facts.visited("returns" if me.peer.boot > 1 else "joins")
            if setup.shown is not None:
                shown.enter_context(setup.shown(from_any_thread(views)))
            shared.log.say(
                "listening", address=node.address or "none, it dials out", peer_id=me.peer.me, boot=me.peer.boot
            )
            yield driver
        except Exception as error:
            driver.upkeep.failure = "" if isinstance(error, NewSettings) else str(error)
            raise
        finally:
            await asyncio.to_thread(shown.close)  # while it is still answered
            ended = await driver.close(setup.grace)
            await service.stop()
            shared.metrics.close()
            me.close()
            shared.log.say("stopped", events=me.peer.events)
    finally:
        stack.close()
        if ended:  # else the folder stays locked until the process ends
            store.close()


def _client(
    setup: Setup, store: StateFolder, saved: dict[str, Any], rng: Random, entering: Generation | None
) -> tuple[Client[Learner], dict[str, str], dict[str, Any]]:
    """Make what learns, as it was committed or new; return it with what must agree among peers, and what was saved.

    What enters a generation with other settings goes on with its weights, or from new ones, and nothing else.
    """
    identity, method = setup.identity, setup.method
    check_options(setup)
    log = Log(identity.name)
    log.say("loading the task", client=setup.client, clients=setup.clients)
    task = build_task(setup.task, setup.client, setup.clients, setup.seed)
    seed = [setup.seed, zlib.crc32(identity.name.encode())]
    update = sparse(method.update(), setup.sparsity, type(method).name)
    held_out = 0.0 if setup.neighbours is None else setup.neighbours.held_out
    learner = Learner(task, update, setup.training, client=identity.name, seed=seed, validation=held_out)
    log.say("preparing the codec", text="the first time, its kernels are compiled")
    _warm_up(learner, references=method.moves is not None)
    rules = method.rules(Place(identity.name))
    if isinstance(rules.inbox, Buffer) and not (rules.inbox.limit or rules.inbox.newest_only):
        raise OptionError("method.limit = 0: without newest_only there must be a bound to what may wait")
    about = describe(method, setup.training, learner, setup.seed)
    if "peer" in saved and entering is not None:
        if not begins_anew(entering, generation_of(saved["peer"]["peer"])):
            carry_over(learner, store.tensors(), setup)
        learner.events = saved["learner"]["events"]
        kept = {key: value for key, value in saved.items() if key != "references"} | {"track": Track().plain()}
        return Client(Peer.restore(saved["peer"], rules), learner, rng), about, kept
    if "peer" in saved:
        check_same(setup, saved, about)
        plain = {"peer": saved["peer"], "learner": saved["learner"], "rng": saved["rng"]}
        return Client.restore(State(store.tensors(), plain), learner, rules), about, saved
    return Client(Peer.join(identity.name, rules, epoch=0), learner, rng), about, saved  # until it is settled who it is


def _weighed_by_wait(staleness: "StalenessOptions", weight: int, received: Any) -> int:
    """Return what a message counts by how long it has waited here: when it was made, only its sender knows."""
    return staleness.weigh(weight, monotonic() - received.at)


def _warm_up(learner: Learner, *, references: bool) -> None:
    """Use the kernels that receiving needs once, so that they are compiled before anybody waits for them."""
    before = learner.save()
    into = Accumulator.zeros(learner.schema)
    for payload in learner.encode().values():
        learner.add(Payload.parse(payload.data, learner.schema), 1, into)
    if references:
        read_reference(learner.update.offer(learner.model))
    learner.restore(before)


async def _resume(setup: Setup, me: DurablePeer, facts: dict[str, Any]) -> None:
    """Commit the new boot of a peer that goes on, before anything is answered; find out whether it needs an epoch."""
    store, peer = me.store, me.peer
    if not epoch_of(peer.me):
        me.stale = "starting"
        return
    if setup.moved:
        store.claim()
    if store.is_copy():
        me.renew("the state folder is a copy, as of a backup; if it was moved here for good, say --moved")
    elif peer.status == "forgotten":
        me.renew("this peer was forgotten by the operator")
    elif peer.gone:
        me.renew("this peer had left, and joins again")
    store.commit(facts)  # older versions did not note all of them
    await me.commit()


def _facts(setup: Setup, about: dict[str, str], peer: Peer) -> dict[str, Any]:
    """Return what a ledger notes of its network; with all who founded it, so that an audit knows who must be there."""
    unit = UNIT if peer.rules.weights.moves_mass else 0
    identity, network = setup.identity, setup.identity.network
    founders = dict.fromkeys(network.founders, unit)
    return {"network": network.fingerprint, "name": identity.name, "about": about, "founders": founders}


def _obey_signals(driver: Driver) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, ValueError):  # not in the main thread, or not on this system
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, driver.stopping.set)
        loop.add_signal_handler(signal.SIGUSR1, driver.leaving.set)
