"""What the real network costs beside bare gRPC: the same bytes, in the same pieces, over the same TLS, in one process.

The bare call sends a payload as raw messages of 1 MB and is answered with two bytes: less than an echo does. A push
adds the envelope, protobuf, the check of the whole payload, the mailbox, and the answer's news.
"""

import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
import torch
from torch import nn

from pushcen.learning import Task
from pushcen.methods import PushCen
from pushcen.models import LeNet, resnet18
from pushcen.protocol import Contact, Envelope
from pushcen.runtime.driver import Driver
from pushcen.runtime.local import free_ports
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.peer import started
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.setup import Setup

CHUNK = 1 << 20
_BARE = "bench.Bare"
_SAMPLES = 480  # of a client in the paper's CIFAR-10 setting
Push = Callable[[], Awaitable[None]]


def task(model: Callable[[], nn.Module], samples: int) -> Callable[[int, int], Task]:
    """Return a task function on random images."""

    def make(client: int, _clients: int) -> Task:
        rng = torch.Generator().manual_seed(client)
        images = torch.randn(samples, 3, 32, 32, generator=rng)
        return Task(model(), (images, torch.randint(10, (samples,), generator=rng)))

    return make


@contextlib.asynccontextmanager
async def peers(
    folder: Path, count: int, function: Any, *, hidden: int = 0, **settings: Any
) -> AsyncIterator[list[Driver]]:
    """Start peers in this process, with certificates and sockets; yield their drivers. The last ones may be `hidden`:
    they do not listen, and the first hosts none of them: it is to reach them through another.
    """
    names = [f"p{i}" for i in range(count)]
    authority = Authority.found(folder / "authority", "bench", names)
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    options = RuntimeOptions(**{"pushes_per_second": 1e6, "calls_per_second": 1e6, **settings})
    async with contextlib.AsyncExitStack() as stack:

        async def start(at: int) -> Driver:
            join = [address for other, address in enumerate(addresses[: count - hidden]) if other != at]
            listen = addresses[at] if at < count - hidden else ""
            identity = Certified(authority.issue(names[at]))
            own = replace(options, tunnels=0) if hidden and at == 0 else options
            setup = Setup(identity, function, folder / names[at], listen, join, runtime=own, client=at,
                          clients=count, method=PushCen(clusters=32), grace=60.0)  # fmt: skip
            return await stack.enter_async_context(started(setup))

        yield list(await asyncio.gather(*map(start, range(count))))


@contextlib.asynccontextmanager
async def bare(identity: Certified, data: bytes) -> AsyncIterator[Push]:
    """Yield a call that sends these bytes by gRPC alone."""

    async def take(pieces: AsyncIterator[bytes], _context: Any) -> bytes:
        size = 0
        async for piece in pieces:
            size += len(piece)
        return b"ok" if size == len(data) else b"no"

    async def cut() -> AsyncIterator[bytes]:
        for begin in range(0, len(data), CHUNK):
            yield data[begin : begin + CHUNK]

    handlers: dict[str, Any] = {"Push": grpc.stream_unary_rpc_method_handler(take)}
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 2 * CHUNK)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_BARE, handlers),))
    port = identity.listen(server, "127.0.0.1:0")
    await server.start()
    async with identity.channel(f"127.0.0.1:{port}", identity.name, []) as channel:
        call: Any = channel.stream_unary(f"/{_BARE}/Push")

        async def push() -> None:
            if await call(cut()) != b"ok":
                raise AssertionError("bytes were lost")

        yield push
    await server.stop(0)


def pusher(sender: Driver, receiver: Driver, delays: list[float]) -> Push:
    """Return a call that pushes the sender's model once, as a compute event does, and notes the time to the mailbox."""
    payloads = sender.me.learner.encode()
    there, name, members = receiver.me, receiver.shared.identity.name, sender.shared.members
    members.meet(name, receiver.node.address, 0.0)
    members.heard(name, Contact(there.peer.me, there.peer.boot), 0.0)
    receive, at, sequence = there.client.receive, [0.0], [0]

    def note(envelope: Envelope) -> bool:
        delays.append(time.perf_counter() - at[0])
        return receive(envelope)

    there.client.receive = note  # type: ignore[method-assign]

    async def push() -> None:
        sequence[0] += 1
        me = sender.me.peer.me
        sender.me.peer.sent[there.peer.me] = sequence[0]  # so that the answer is not taken for a lie
        at[0] = time.perf_counter()
        await sender.channels._push(name, Envelope(me, there.peer.me, 0, sequence[0], sequence[0], payloads))

    return push


async def side_by_side(model: Callable[[], nn.Module], pushes: int, rounds: int) -> dict[str, float]:
    """Measure pushes and bare calls in turn; the best round of each counts."""
    with tempfile.TemporaryDirectory() as folder:
        async with peers(Path(folder), 2, task(model, 2)) as (sender, receiver):
            data = sender.me.learner.encode()[0].data
            identity = receiver.shared.identity
            if not isinstance(identity, Certified):
                raise AssertionError("the bench uses certificates")
            delays: list[float] = []
            sender.me.peer.sequence = pushes * (rounds + 1)  # one event, many pushes: its word is signed once
            await sender.me.commit()
            async with bare(identity, data) as plain:
                calls = {"ours": pusher(sender, receiver, delays), "bare": plain}
                cpu: dict[str, list[float]] = {name: [] for name in calls}
                wall: dict[str, list[float]] = {name: [] for name in calls}
                for turn in range(rounds + 1):
                    for name, call in calls.items():
                        begin, busy = time.perf_counter(), time.process_time()
                        for _ in range(pushes):
                            await call()
                        if turn:  # the first is for warming up
                            cpu[name].append((time.process_time() - busy) / pushes)
                            wall[name].append((time.perf_counter() - begin) / pushes)
                    if not turn:
                        delays.clear()
            if receiver.shared.metrics.received.labels("news")._value.get() != pushes * (rounds + 1):
                raise AssertionError("pushes were lost")
            best = {name: min(values) for name, values in cpu.items()}
            fast = {name: min(values) for name, values in wall.items()}
            cuts = statistics.quantiles(delays, n=100)
            return {
                "payload_bytes": len(data),
                "cpu_vs_bare_grpc": round(best["ours"] / best["bare"], 3),
                "throughput_vs_bare_grpc": round(fast["bare"] / fast["ours"], 3),
                "cpu_ms_per_push": round(1000 * best["ours"], 3),
                "mb_per_second": round(len(data) / 1e6 / fast["ours"], 1),
                "p50_ms_to_mailbox": round(1000 * cuts[49], 3),
                "p99_ms_to_mailbox": round(1000 * cuts[98], 3),
            }


async def network_share(events: int, count: int = 4) -> dict[str, float]:
    """Measure which share of a training run's CPU is neither training nor the ledger: LeNet, the paper's samples."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"start_with": count - 1, "evaluate_every": 0}
        async with peers(Path(folder), count, task(lambda: LeNet(10), _SAMPLES), **settings) as drivers:
            spent = {"training": 0.0, "ledger": 0.0}
            for driver in drivers:
                trainer = driver.trainer
                trainer._train = timed(trainer._train, spent, "training")  # type: ignore[method-assign]
                store = driver.me.store
                store.commit = timed(store.commit, spent, "ledger")  # type: ignore[method-assign]
            begin = time.process_time()
            lives = [asyncio.create_task(driver.run(events)) for driver in drivers]
            while any(driver.me.peer.events < events for driver in drivers):
                await asyncio.sleep(0.05)
                for life in lives:
                    if life.done():
                        life.result()
            await asyncio.sleep(0.5)
            total = time.process_time() - begin
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            pushed = sum(driver.shared.metrics.received.labels("news")._value.get() for driver in drivers)
            return {
                "network_cpu_share": round(1 - (spent["training"] + spent["ledger"]) / total, 4),
                "ledger_cpu_share": round(spent["ledger"] / total, 4),
                "pushes_per_event": round(pushed / sum(driver.me.peer.events for driver in drivers), 2),
            }


def timed(function: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    """Return a function that adds the CPU time of its thread to `spent`."""

    def wrapped(*arguments: Any) -> Any:
        begin = time.thread_time()
        try:
            return function(*arguments)
        finally:
            spent[name] += time.thread_time() - begin

    return wrapped


def run(rounds: int = 25) -> dict[str, Any]:
    """Measure everything. docs/runtime.md explains the keys."""
    from pushcen.bench.hosted import hosted

    torch.set_num_threads(1)
    lenet = asyncio.run(side_by_side(lambda: LeNet(10), 20, rounds))
    resnet = asyncio.run(side_by_side(lambda: resnet18(10), 3, rounds))
    through = {
        "lenet": asyncio.run(hosted(lambda: LeNet(10), 20, rounds)),
        "resnet18": asyncio.run(hosted(lambda: resnet18(10), 3, rounds)),
    }
    return {
        "cpu_vs_bare_grpc": max(lenet["cpu_vs_bare_grpc"], resnet["cpu_vs_bare_grpc"]),
        "throughput_vs_bare_grpc": min(lenet["throughput_vs_bare_grpc"], resnet["throughput_vs_bare_grpc"]),
        "hosted_throughput_vs_direct": through["resnet18"]["hosted_throughput_vs_direct"],
        "lenet": lenet,
        "resnet18": resnet,
        "hosted": through,
        "training_run": asyncio.run(network_share(12)),
    }
