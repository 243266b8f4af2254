"""One peer that receives from many: the rate holds, and memory stays flat."""

import asyncio
import time
from pathlib import Path

import pytest

from pushcen.learning import Learner
from pushcen.methods import PushCen
from pushcen.protocol import Envelope
from pushcen.protocol.wire import header_bytes
from pushcen.runtime.channels import Line
from pushcen.runtime.local import LocalNetwork
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.wire.pieces import write_piece

from .tasks import lenet
from .world import LIMIT, run, until


def resident(pid):
    """Memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def pushes(lines, target, payload, count, first):
    """Let all senders push at once, `count` in all; return pushes a second."""

    async def one(name, line, turns):
        for turn in range(turns):
            sequence = first + turn
            envelope = Envelope(f"{name}/1", f"{target}/1", 0, sequence, sequence, None)

            async def pieces(envelope=envelope):
                yield write_piece(header_bytes(envelope, len(payload)), payload)

            answer = await line.push(pieces(), LIMIT)
            assert answer.news, answer

    begin = time.monotonic()
    await asyncio.gather(*(one(name, line, count // len(lines)) for name, line in lines.items()))
    return count / (time.monotonic() - begin)


def load(folder, senders, count, rounds):
    settings = {"runtime.pushes_per_second": 1e6, "method.clusters": 32}
    network = LocalNetwork(folder, "tests.runtime.tasks:lenet", 1, 0, settings, founders=["p0", "s0"])
    names = [f"s{i}" for i in range(senders)]
    for name in names:
        network.authority.issue(name)
    payload = Learner(lenet(0, 1), PushCen(clusters=32).update()).encode()[0].data
    rates, memory = [], []

    async def story():
        network.start()
        [process] = network.processes.values()
        await until(lambda: "listening" in network.last_words("p0"))
        identities = {name: Certified(network.authority.folder / name) for name in names}
        lines = {
            name: Line(identity.channel(network.addresses["p0"], "p0", []), "", name)
            for name, identity in identities.items()
        }
        for turn in range(rounds):
            rates.append(await pushes(lines, "p0", payload, count, 1 + turn * count))
            memory.append(resident(process.pid))
        for line in lines.values():
            await line.close()

    try:
        run(story(), 1200)
    finally:
        network.stop()
    return rates, memory, len(payload)


def test_a_few_hundred_pushes_from_many(tmp_path):
    _, memory, _ = load(tmp_path, senders=6, count=150, rounds=2)
    assert memory[1] < memory[0] + 20


@pytest.mark.slow
def test_ten_thousand_pushes_leave_memory_flat_and_the_rate_as_it_was(tmp_path):
    rates, memory, size = load(tmp_path, senders=24, count=2040, rounds=5)
    print(f"{[round(rate) for rate in rates]} pushes/s of {size} bytes; {[round(m) for m in memory]} MB")
    assert memory[-1] < memory[1] + 20
    assert min(rates[1:]) > rates[0] / 3
