"""From a task, a folder of certificates and a state folder to a running peer."""

import asyncio
import contextlib
import signal
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pushcen.client import Client
from pushcen.codec import Accumulator, Payload
from pushcen.errors import LedgerError, OptionError
from pushcen.learning import Learner, State, TaskFunction, TrainingOptions, build_task
from pushcen.methods import Method, Place, PushCen
from pushcen.protocol import UNIT, Buffer, Peer, epoch_of
from pushcen.runtime.driver import Driver
from pushcen.runtime.epochs import ask_first, next_peer
from pushcen.runtime.fingerprint import describe, difference
from pushcen.runtime.members import check_address
from pushcen.runtime.node import PeerNode
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.service import Service
from pushcen.runtime.state_folder import StateFolder
from pushcen.runtime.trainer import write_tensors

if TYPE_CHECKING:
    from pushcen.config import Config

_EVERYWHERE = ("0.0.0.0", "[::]")


@dataclass
class Setup:
    """What a peer is started with."""

    identity: Identity
    task: TaskFunction
    state: Path
    listen: str
    join: Sequence[str] = ()
    advertise: str = ""
    """Where others reach it, if not where it listens."""
    method: Method = field(default_factory=PushCen)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    seed: int = 0
    client: int = 0
    clients: int = 1
    metrics: str = ""
    """HOST:PORT for Prometheus."""
    certs: Path | None = None
    moved: bool = False
    """Take a copied state folder for the original."""
    grace: float = 2.0
    """How long to wait for a compute event that is to be given up."""


def peer_config(task: str, settings: Iterable[str] = ()) -> "Config":
    """Read a config: `module:function` is a task with all else as usual, everything else a preset or a TOML file.

    >>> peer_config("digits", ["method.clusters=8", "runtime.patience=1.0"]).runtime.patience
    1.0
    """
    from pushcen.config import load_config, parse_settings

    given = parse_settings(settings)
    if ":" in task:
        return load_config({"task": {"function": task}}, given)
    return load_config(task, given)


async def run_peer(setup: Setup, events: int | None = None, *, leave: bool = False) -> None:
    """Run a peer until it is told to stop (SIGTERM, SIGINT), or has left (`leave`, or SIGUSR1)."""
    async with started(setup) as driver:
        _obey_signals(driver.node)
        await driver.run(events, leave=leave)


@contextlib.asynccontextmanager
async def started(setup: Setup) -> AsyncIterator[Driver]:
    """Start a peer: it is known who it is, that is committed, and it answers. `Driver.run` lets it live."""
    for address in (setup.listen, *setup.join):
        check_address(address if not address.endswith(":0") else address[:-1] + "1")
    store, ended = StateFolder(setup.state), True
    try:
        node = _node(setup, store)
        await _resume(setup, node)
        service = Service(node)
        port = await service.start(setup.listen)
        node.address = _reachable(setup, port)
        driver = Driver(node, setup.join, setup.certs)
        try:
            if setup.metrics:
                node.metrics.serve(setup.metrics)
            driver.read_records()
            await _begin(setup, node, driver)
            node.log.say("listening", address=node.address, peer_id=node.peer.me, boot=node.peer.boot)
            yield driver
        finally:
            ended = await driver.close(setup.grace)
            await service.stop()
            node.close()
            node.log.say("stopped", events=node.peer.events)
    finally:
        if ended:  # else the folder stays locked until the process ends
            store.close()


def _node(setup: Setup, store: StateFolder) -> PeerNode:
    identity, method = setup.identity, setup.method
    if method.needs_graph:
        raise OptionError(f"method.name = {type(method).name!r}: needs a fixed graph, which a real network has not")
    task = build_task(setup.task, setup.client, setup.clients, setup.seed)
    seed = [setup.seed, zlib.crc32(identity.name.encode())]
    learner = Learner(task, method.update(), setup.training, client=identity.name, seed=seed)
    _warm_up(learner)
    rules = method.rules(Place(identity.name))
    if isinstance(rules.inbox, Buffer) and not (rules.inbox.limit or rules.inbox.newest_only):
        raise OptionError("method.limit = 0: without newest_only there must be a bound to what may wait")
    about = describe(method, setup.training, learner, setup.seed)
    saved = store.load()
    rng = Random(f"{setup.seed} {identity.name}")
    if "peer" in saved:
        _check_same(setup, saved, about)
        plain = {"peer": saved["peer"], "learner": saved["learner"], "rng": saved["rng"]}
        client = Client.restore(State(store.tensors(), plain), learner, rules)
    else:
        client = Client(Peer.join(identity.name, rules, epoch=0), learner, rng)  # until it is settled who this is
    node = PeerNode(identity, setup.runtime, store, client, about, setup.listen, Random(rng.random()))
    node.restore(saved)
    return node


def _warm_up(learner: Learner) -> None:
    """Use the kernels that receiving needs once, so that they are compiled before anybody waits for them."""
    before = learner.save()
    into = Accumulator.zeros(learner.schema)
    for payload in learner.encode().values():
        learner.add(Payload.parse(payload.data, learner.schema), 1, into)
    learner.restore(before)


async def _resume(setup: Setup, node: PeerNode) -> None:
    """Commit the new boot of a peer that goes on, before anything is answered; find out whether it needs an epoch."""
    store, peer = node.store, node.peer
    if not epoch_of(peer.me):
        node.stale = "starting"
        return
    if setup.moved:
        store.claim()
    if store.is_copy():
        node.renew("the state folder is a copy, as of a backup; if it was moved here for good, say --moved")
    elif peer.status == "forgotten":
        node.renew("this peer was forgotten by the operator")
    elif peer.gone:
        node.renew("this peer had left, and joins again")
    store.commit(_facts(node))  # older versions did not note all of them
    await node.commit()


async def _begin(setup: Setup, node: PeerNode, driver: Driver) -> None:
    """Settle in which epoch a peer with an empty state folder begins, and commit that."""
    if epoch_of(node.peer.me):
        return
    store, learner = node.store, node.client.learner
    store.commit(_facts(node))
    state = learner.save(whole=False)
    files = await asyncio.get_running_loop().run_in_executor(None, write_tensors, store, state)
    known = await ask_first(node, driver.neighbours, setup.join)
    if node.claims.own.epoch:
        node.log.warn("this peer's state was lost; it joins with no mass", known=node.claims.own.epoch)
    await node.commit(state.plain, files, lambda: Client(next_peer(node, known), learner, node.client.rng))


def _facts(node: PeerNode) -> dict[str, Any]:
    """Say what a ledger notes of its network; with all who founded it, so that an audit knows who must be there."""
    unit = UNIT if node.peer.rules.weights.moves_mass else 0
    network = node.identity.network
    founders = dict.fromkeys(network.founders, unit)
    return {"network": network.fingerprint, "name": node.identity.name, "about": node.about, "founders": founders}


def _check_same(setup: Setup, saved: dict[str, object], about: dict[str, str]) -> None:
    identity, folder = setup.identity, setup.state
    if saved.get("name") != identity.name or saved.get("network") != identity.network.fingerprint:
        raise LedgerError(
            f"{folder}: belongs to {saved.get('name')} of another network or name, not to {identity.name}"
        )
    before = saved.get("about")
    if before != about and isinstance(before, dict):
        raise LedgerError(f"{folder}: was made by another run: {difference(about, before)}; use another state folder")


def _reachable(setup: Setup, port: int) -> str:
    host = setup.listen.rpartition(":")[0]
    if setup.advertise:
        return check_address(setup.advertise)
    if host in _EVERYWHERE:
        raise OptionError(f"listen = {setup.listen}: say with --advertise HOST:PORT where others reach this peer")
    return f"{host}:{port}"


def _obey_signals(node: PeerNode) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, ValueError):  # not in the main thread, or not on this system
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, node.stopping.set)
        loop.add_signal_handler(signal.SIGUSR1, node.leaving.set)
