"""What it costs to be reached through a host: the same pushes, straight to a peer and through another one.

Sender, host and receiver are in one process, and share its cores and its event loop.
"""

import asyncio
import contextlib
import math
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from torch import nn

from pushcen.bench.runtime import peers, pusher, task
from pushcen.runtime.driver import Driver


@contextlib.asynccontextmanager
async def living(drivers: list[Driver]) -> AsyncIterator[None]:
    """Let peers meet, and train nothing."""
    lives = [asyncio.create_task(driver.run(0)) for driver in drivers]
    try:
        yield
    finally:
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)


async def hosted(model: Callable[[], nn.Module], pushes: int, rounds: int) -> dict[str, float]:
    """Measure pushes to a peer that listens, and in turn to one that does not; the best round of each counts."""
    with tempfile.TemporaryDirectory() as folder:
        function, count = task(model, 2), pushes * (rounds + 1)
        async with peers(Path(folder), 3, function, hidden=1, hosts=1, hello_every=600.0) as (sender, host, hidden):
            async with living([sender, host, hidden]):
                while "p2" not in {member.name for member in sender.shared.members.online()}:
                    await asyncio.sleep(0.05)
                sender.node.tunnels = None  # else it would lead its pushes to whom it hosts by itself
                size = len(sender.me.learner.encode()[0].data)
                delays: dict[str, list[float]] = {"direct": [], "hosted": []}
                sender.me.peer.sequence = count
                await sender.me.commit()
                calls = {
                    "direct": pusher(sender, host, delays["direct"]),
                    "hosted": pusher(sender, hidden, delays["hosted"]),
                }
                fast, carried = dict.fromkeys(calls, math.inf), host.shared.metrics.tunnel_bytes._value.get()
                for turn in range(rounds + 1):
                    for name, call in calls.items():
                        begin = time.perf_counter()
                        for _ in range(pushes):
                            await call()
                        if turn:  # the first is for warming up
                            fast[name] = min(fast[name], (time.perf_counter() - begin) / pushes)
                carried = (host.shared.metrics.tunnel_bytes._value.get() - carried) / (size * count)
            cuts = statistics.quantiles(delays["hosted"][pushes:], n=100)
            return {
                "payload_bytes": size,
                "hosted_throughput_vs_direct": round(fast["direct"] / fast["hosted"], 3),
                "mb_per_second": round(size / 1e6 / fast["hosted"], 1),
                "direct_mb_per_second": round(size / 1e6 / fast["direct"], 1),
                "bytes_vs_payload": round(carried, 4),
                "p50_ms_to_mailbox": round(1000 * cuts[49], 3),
                "p99_ms_to_mailbox": round(1000 * cuts[98], 3),
            }
