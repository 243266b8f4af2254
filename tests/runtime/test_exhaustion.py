"""What runs out, be it descriptors, room on the disk or slots for calls, slows a peer down and never ends it."""

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.runtime.gate import CALLS, raise_descriptors
from pushcen.runtime.local import LocalNetwork, free_ports
from pushcen.runtime.metrics import Metrics
from pushcen.runtime.operator import deliver
from pushcen.runtime.security.identity import Certified

from .world import World, run, until

TINY = "tests.runtime.tasks:tiny"
FEW = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)); from pushcen.cli import app; app()"


def open_files(process="self"):
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def connected(address, count):
    """Open connections on which nothing is ever said."""
    host, port = address.rsplit(":", 1)
    return [socket.create_connection((host, int(port)), 10) for _ in range(count)]


def test_twelve_hundred_idle_connections_of_strangers_neither_end_a_peer_nor_stop_its_exchange(tmp_path):
    if raise_descriptors() < 1400:
        pytest.skip("too few descriptors for the flood")
    settings = {"runtime.start_with": 1, "runtime.pause": 0.05, "runtime.handshake_timeout": 3.0}
    network = LocalNetwork(tmp_path, TINY, 2, None, settings, program=("-c", FEW))

    def more(count=10, seconds=200):
        """Wait until both have trained and received more, and all are still alive."""
        begun = {name: (network.events(name), received(name)) for name in network.names}
        end = time.monotonic() + seconds
        while not all(
            network.events(name) >= events + count and received(name) > taken for name, (events, taken) in begun.items()
        ):
            assert not network.finished()  # raises if one has died
            assert time.monotonic() < end, network.last_words("p0")
            time.sleep(0.1)

    def received(name):
        rows = network.rows(name)
        return rows[-1]["bytes_in"] if rows else 0

    network.start()
    try:
        more()
        with contextlib.ExitStack() as stack:
            for connection in connected(network.addresses["p0"], 1200):
                stack.enter_context(connection)
            assert open_files(network.processes["p0"].pid) < 600
            more()
            network.kill("p1")
            network.start("p1")  # who comes anew gets in, too, as soon as handshakes have timed out
            more()
        more()
    finally:
        network.stop()
    assert [process.returncode for process in network.processes.values()] == [0, 0]
    found = network.audit()
    assert (found.violations, found.balanced) == ([], True)


def test_a_peer_out_of_descriptors_waits_and_goes_on(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        nodes = await world.start(*world.names)
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, hard))  # all that are open stay open
        try:
            await until(lambda: all(node.metrics.disk_waits._value.get() > 1 for node in nodes))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        before = {name: world.events(name) for name in world.names}
        await until(lambda: all(world.events(name) > before[name] + 3 for name in world.names))
        assert [node.peer.boot for node in nodes] == [1, 1, 1]
        await world.check()

    run(story())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_peer_whose_disk_is_full_waits_and_goes_on(tmp_path):
    disk = tmp_path / "p0"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount")

    async def story():
        world = World(tmp_path, pause=0.05)
        [node, *_] = await world.start(*world.names)
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        with contextlib.suppress(OSError):
            (disk / "filler").write_bytes(b"x" * (2 << 20))
        await until(lambda: node.metrics.disk_waits._value.get() > 1)
        others = world.events("p1")
        await until(lambda: world.events("p1") > others + 3)  # nobody waits for it
        (disk / "filler").unlink()
        before = world.events("p0")
        await until(lambda: world.events("p0") > before + 3)
        assert node.peer.boot == 1
        assert len(list(disk.glob("weights-*"))) <= 2  # nothing half written is left
        await world.check()

    try:
        run(story())
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_what_may_pass_ends_with_another_code_than_what_does_not(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--insecure", "ann", "--state", str(tmp_path / "a")]
        done = CliRunner().invoke(app, ["peer", TINY, *words])
    assert (done.exit_code, "cannot be listened on" in done.stderr) == (75, True)
    (tmp_path / "a" / "ledger.db").write_bytes(b"not a database, not at all" * 500)
    done = CliRunner().invoke(app, ["peer", TINY, *words])
    assert (done.exit_code, "not a database" in done.stderr) == (2, True)


def test_idle_readers_of_the_figures_take_no_descriptors_and_make_room(tmp_path):
    [port] = free_ports(1)
    Metrics("ann").serve(f"127.0.0.1:{port}")
    before = open_files()
    idle = connected(f"127.0.0.1:{port}", 50)
    time.sleep(0.5)
    assert open_files() < before + 50 + 10  # 8 are taken in, and one that waits for room
    for connection in idle[8:]:
        connection.close()
    figures = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
    assert "pushcen_peer_info" in figures
    for connection in idle:
        connection.close()


@contextlib.asynccontextmanager
async def watches(world, certs, count):
    """Many `Health.Watch` on as many connections as it takes; gives how each of them ended, if it has."""
    request = health_pb2.HealthCheckRequest(service="").SerializeToString()
    identity, ended = Certified(certs), []
    channels = [
        identity.channel(world.addresses["p0"], "p0", [("grpc.use_local_subchannel_pool", 1)]) for _ in range(20)
    ]

    async def watch(channel):
        call = channel.unary_stream("/grpc.health.v1.Health/Watch")(request)
        try:
            async for _ in call:
                pass
        except grpc.aio.AioRpcError as error:
            ended.append(error.code())

    tasks = [asyncio.create_task(watch(channels[at % 20])) for at in range(count)]
    try:
        yield ended
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for channel in channels:
            await channel.close()


@pytest.mark.parametrize("revoked", [True, False], ids=["revoked", "a member"])
def test_nobody_holds_all_slots_with_calls_that_never_end(tmp_path, revoked):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "eve"), calls_per_second=1e6)
        [node] = await world.start("p0", live=False, join=[])
        if revoked:
            await deliver(world.authority, world.authority.revoke("eve"), world.addresses["p0"])
        async with watches(world, world.certs("eve"), 320) as ended:
            await until(lambda: len(ended) == (320 if revoked else 320 - CALLS))
            expected = grpc.StatusCode.UNAUTHENTICATED if revoked else grpc.StatusCode.RESOURCE_EXHAUSTED
            assert set(ended) == {expected}
            line = world.line("p1", "p0")
            for _ in range(20):
                assert (await line.hello(node.hello(None, name="p1"), 5)).peer == "p0/1"
            await line.close()
        await world.stop()

    run(story())


def test_every_call_asks_who_calls_and_how_often(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "eve"), calls_per_second=2.0)
        [node] = await world.start("p0", live=False, join=[])
        async with Certified(world.certs("eve")).channel(world.addresses["p0"], "p0", []) as channel:
            paths = ["/grpc.health.v1.Health/Check", "/pushcen.v1.Peer/Nonsense", "/grpc.reflection.v1.X/Info"]

            async def codes(path, count):
                found = []
                for _ in range(count):
                    try:
                        await channel.unary_unary(path)(b"", timeout=5)
                        found.append("ok")
                    except grpc.aio.AioRpcError as error:
                        found.append(error.code().name)
                return found

            assert await codes(paths[0], 1) == ["ok"]
            assert await codes(paths[1], 1) == ["UNIMPLEMENTED"]
            assert "RESOURCE_EXHAUSTED" in await codes(paths[2], 20)
            await deliver(world.authority, world.authority.revoke("eve"), world.addresses["p0"])
            for path in paths:
                assert await codes(path, 1) == ["UNAUTHENTICATED"]
        assert node.metrics.refusals.labels("certificate")._value.get() == 3
        await world.stop()

    run(story())
