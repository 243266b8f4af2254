"""Peers that nobody can dial: they take part through hosts, which can neither read nor change nor forge."""

import asyncio
import os
import signal
import subprocess
import sys

import grpc
import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import LedgerError, PushcenError
from pushcen.runtime.line import Line
from pushcen.runtime.local import free_ports
from pushcen.runtime.members import check_place, hosts_of
from pushcen.runtime.reach import tunnels
from pushcen.runtime.reach.pipe import HOST, TUNNEL, pipe
from pushcen.runtime.reach.tunnels import Tunnels
from pushcen.runtime.state_folder import read_state

from .proxy import proxy_at
from .world import LIMIT, World, run, until, wait_until

NEWS = {"start_with": 1}


def pushcen(*words):
    return CliRunner().invoke(app, list(map(str, words))).exit_code


def news(node):
    return node.metrics.received.labels("news")._value.get()


def place(world, who, of):
    """Where a peer takes another to be."""
    member = world.node(who).members.all.get(of)
    return member.address if member else ""


async def open_and_hidden(world, opened, hidden, **options):
    """Start some that listen, and some that only dial out to them."""
    await world.start(*opened, settings=NEWS, **options)
    join = [world.addresses[name] for name in opened]
    await world.start(*hidden, listen="", join=join, settings=NEWS, **options)


async def with_one_host(world):
    """Start p0, which hosts and pushes nothing, p1, which hosts nobody, and p2, which only dials out."""
    starts = world.start("p0", events=0), world.start("p1", settings={**NEWS, "tunnels": 0})
    await asyncio.gather(*starts)
    await world.start("p2", listen="", join=[world.addresses["p0"], world.addresses["p1"]], settings=NEWS)


def test_a_peer_that_only_dials_out_trains_with_the_others_and_every_quantum_is_somewhere(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2",))
        await until(lambda: all(news(world.node(name)) > 3 for name in world.names))
        assert hosts_of(place(world, "p0", "p2")) == ["p0", "p1"]
        hosts = [world.node("p0").metrics, world.node("p1").metrics]
        assert [host.hosted._value.get() for host in hosts] == [1, 1]
        assert sum(host.tunnel_bytes._value.get() for host in hosts) == 0  # they call it themselves, through nobody
        await world.check()

    run(story())


def test_two_that_only_dial_out_reach_each_other(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "p2", "p3"), pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2", "p3"))
        await until(lambda: hosts_of(place(world, "p2", "p3")) and hosts_of(place(world, "p3", "p2")))
        await until(lambda: {"p2"} <= {one.name for one in world.node("p3").members.online()})
        await until(lambda: {"p3"} <= {one.name for one in world.node("p2").members.online()})
        await until(lambda: world.node("p2").peer.answer(world.node("p3").peer.me).credited > 0)
        await world.check()

    run(story())


def test_when_a_host_goes_others_take_its_place_and_no_mass_is_lost(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "p2", "hidden"), pause=0.05)
        await open_and_hidden(world, ("p0", "p1", "p2"), ("hidden",))
        await until(lambda: len(hosts_of(world.node("hidden").node.address)) == 2)
        for gone in hosts_of(world.node("hidden").node.address):
            await world.stop(gone)
            await until(lambda gone=gone: gone not in hosts_of(world.node("hidden").node.address))
            await world.start(gone, settings=NEWS)
            left = next(name for name in ("p0", "p1", "p2") if name != gone)
            await until(lambda left=left: place(world, left, "hidden") == world.node("hidden").node.address)
            before = news(world.node("hidden"))
            await until(lambda before=before: news(world.node("hidden")) > before + 2)
        await world.check()

    run(story())


def test_a_peer_behind_a_proxy_dials_out_through_it_alone(tmp_path):
    reached = []

    async def story():
        server, address = await proxy_at("127.0.0.1", 0, reached)
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ())
        join = [world.addresses["p0"]]
        await world.start("p2", listen="", join=join, settings=NEWS, proxy=address)
        await until(lambda: news(world.node("p2")) > 2)
        await until(lambda: world.node("p0").peer.answer(world.node("p2").peer.me).credited > 0)
        await world.check()
        server.close()

    run(story())
    assert len(set(reached)) == 2  # both of the others, and nowhere else


@pytest.mark.parametrize("address", ["@", "@p0,", "@P0", "@" + ",".join(f"p{i}" for i in range(9)), "@any", "@p0/1"])
def test_a_place_that_is_none_is_refused(address):
    with pytest.raises(PushcenError):
        check_place(address)


def carried(monkeypatch, change=lambda data: data):
    """Note what hosts carry, and change it on the way."""
    seen, copy = [], Tunnels._copy

    class Source:
        def __init__(self, context):
            self._context = context

        async def read(self):
            data = await self._context.read()
            if data is grpc.aio.EOF:
                return data
            seen.append(data)
            return change(data)

    monkeypatch.setattr(Tunnels, "_copy", lambda self, name, source, target: copy(self, name, Source(source), target))
    return seen


def test_a_host_can_read_nothing(tmp_path, monkeypatch):
    seen = carried(monkeypatch)
    whole = []
    push = Line.push

    async def noted(self, pieces, timeout):
        whole.append(pieces)
        return await push(self, pieces, timeout)

    monkeypatch.setattr(Line, "push", noted)

    async def story():
        world = World(tmp_path, names=("p0", "p1", "p2"), pause=0.05)
        await with_one_host(world)
        await until(lambda: news(world.node("p2")) > 3)
        await world.check()

    run(story())
    text = b"".join(seen)
    assert text
    assert whole
    assert all(b"PCEN" in pieces for pieces in whole)
    for secret in (b"PCEN", b"p0/", b"p2/", b"pushcen.v1"):
        assert secret not in text


@pytest.mark.parametrize("how", ["turns a bit", "says it again"])
def test_what_a_host_changes_arrives_nowhere(tmp_path, monkeypatch, how):
    turned = []

    def change(data):
        if len(data) < 400 or turned.count(len(data)) > 50:  # the handshake is let through
            return data
        turned.append(len(data))
        if how == "says it again":
            return data + data
        return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]

    carried(monkeypatch, change)

    async def story():
        world = World(tmp_path, names=("p0", "p1", "p2"), pause=0.05)
        await with_one_host(world)
        await until(lambda: len(turned) > 8)
        assert news(world.node("p2")) == 0
        counts = world.node("p2").metrics.refusals
        assert sum(counts.labels(reason)._value.get() for reason in ("payload", "malformed", "record")) == 0
        await world.check()

    run(story())


def test_a_host_cannot_answer_in_the_name_of_whom_it_hosts(tmp_path, monkeypatch):
    """A host leads tunnels to itself: TLS shows who is there."""

    async def story():
        world = World(tmp_path, names=("p0", "p1", "liar"), pause=0.05)
        await world.start("p0", "p1", "liar", settings=NEWS)
        members = world.node("p0").members
        members.meet("p1", "@liar", 0.0)

        async def to_itself(self, caller, _requests, context):
            host, _, port = world.addresses["liar"].rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            await context.send_initial_metadata(())
            await pipe(context, reader, writer)

        monkeypatch.setattr(Tunnels, "_tunnel", to_itself)
        answered = members.all["p1"].answered
        await asyncio.sleep(0)
        line = Line(world.node("p0").channels.open("@liar", "p1"), "@liar", "p0")
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await line.hello(world.node("p0").node.hello(None), 2.0)
        assert error.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        assert members.all["p1"].answered >= answered
        await line.close()
        await world.stop()

    run(story())


def test_tunnels_of_a_revoked_member_end_and_no_new_one_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(tunnels, "_ASK_AGAIN", 0.2)

    async def story():
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2",))
        await until(lambda: news(world.node("p2")) > 1)
        record = world.authority.revoke("p2")
        for name in ("p0", "p1"):
            world.node(name).me.keep(record)
        await until(lambda: all(world.node(name).metrics.hosted._value.get() == 0 for name in ("p0", "p1")))
        await until(lambda: world.node("p2").node.address == "")
        await asyncio.sleep(1.0)
        assert all(world.node(name).metrics.hosted._value.get() == 0 for name in ("p0", "p1"))
        await world.stop()

    run(story())


def test_one_member_cannot_take_the_tunnels_or_the_calls_of_others(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "greedy"), tunnels=4)
        await world.start("p0", "p1", settings=NEWS)
        line = world.line("greedy", "p0")
        metadata = grpc.aio.Metadata(("pushcen-name", "greedy"))
        calls = [line._channel.stream_stream(HOST)(metadata=metadata) for _ in range(12)]
        codes = []
        for call in calls:
            try:
                await call.read()
                codes.append("hosted")
            except grpc.aio.AioRpcError as error:
                codes.append(error.code())
        assert set(codes) == {"hosted", grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert codes.count("hosted") <= 6  # one that a newer has replaced gives its slot back after a while
        hello = await line.hello(world.node("p1").node.hello(None), 5.0)  # its own calls have other slots
        assert hello.refusal == "malformed"
        other = world.line("p1", "p0")
        assert await other._channel.stream_stream(HOST)(metadata=grpc.aio.Metadata(("pushcen-name", "p1"))).read()
        for one in (line, other):
            await one.close()
        await world.stop()

    run(story())


@pytest.mark.parametrize(
    "words", [{}, {"pushcen-to": "nobody"}, {"pushcen-accept": "00"}, {"pushcen-to": "p" * 5000}], ids=repr
)
def test_a_tunnel_to_nobody_is_refused(tmp_path, words):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        await world.start("p0", "p1", live=False)
        line = world.line("p1", "p0")
        metadata = grpc.aio.Metadata(("pushcen-name", "p1"), *words.items())
        call = line._channel.stream_stream(TUNNEL)(metadata=metadata)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call.read()
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert world.node("p0").metrics.refusals.labels("tunnel")._value.get() == 1
        await line.close()
        await world.stop()

    run(story())


def test_a_peer_that_leaves_through_its_hosts_takes_no_mass_along(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2",))
        await until(lambda: news(world.node("p2")) > 1)
        driver = world.drivers["p2"]
        assert all("p2" in world.node(name).channels._bridges._paths for name in ("p0", "p1"))
        driver.leaving.set()
        await until(lambda: driver.me.peer.gone)
        await until(lambda: not any(world.node(name).channels._bridges._paths for name in ("p0", "p1")))
        await world.check()

    run(story())


def test_a_hidden_peer_goes_on_after_a_restart(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2",))
        await until(lambda: news(world.node("p2")) > 1)
        await world.stop("p2")
        [node] = await world.start("p2", listen="", join=[], settings=NEWS)
        assert node.peer.boot == 2
        await until(lambda: news(node) > 2)
        await world.check()

    run(story())


def test_a_network_of_processes_of_which_two_do_not_listen_survives_the_death_of_a_host(tmp_path):
    names, ports = ("ann", "bob", "cat", "dan"), free_ports(2)
    assert pushcen("certs", "init", tmp_path / "ca", "--network", "n", *(f"--founder={name}" for name in names)) == 0
    assert pushcen("certs", "issue", tmp_path / "ca", *names) == 0
    joins = [word for port in ports for word in ("--join", f"127.0.0.1:{port}")]

    def start(at):
        state, certs = tmp_path / names[at], tmp_path / "ca" / names[at]
        words = ["peer", "tests.runtime.tasks:tiny", "--state", state, "--certs", certs, *joins]
        words += ["--listen", f"127.0.0.1:{ports[at]}"] if at < 2 else []
        words += ["--set", "runtime.pause=0.05", "--set", "runtime.retry_last=1", "--set", "runtime.hello_every=1"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with (tmp_path / f"{names[at]}.log").open("ab") as log:
            command = [sys.executable, "-m", "pushcen", *map(str, words)]
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def merged(name, others):
        try:
            credited = read_state(tmp_path / name)["peer"]["credited"]
        except (LedgerError, KeyError):  # it has not begun
            return False
        return {peer.partition("/")[0] for peer in credited} >= set(others)

    def logs():
        return "\n".join((tmp_path / f"{name}.log").read_text()[-2000:] for name in names)

    processes = [start(at) for at in range(4)]
    try:
        wait_until(lambda: merged("cat", ("ann", "dan")) and merged("dan", ("bob", "cat")), logs)
        processes[0].kill()
        processes[0].wait()
        wait_until(lambda: (tmp_path / "dan.log").read_text().count("reached through") >= 3, logs)
        processes[0] = start(0)
        wait_until(lambda: (tmp_path / "ann.log").read_text().count("training begins") == 2, logs)
        wait_until(lambda: all(merged(name, set(names) - {name}) for name in names), logs)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(LIMIT) for process in processes]
    assert codes == [0, 0, 0, 0]
    assert pushcen("audit", *(tmp_path / name for name in names)) == 0
