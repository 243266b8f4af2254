"""Who leaves hands everything over, however late or silent others are, and says whom it waits for."""

import asyncio

import pytest
from grpc.aio import UsageError

from pushcen.errors import TransientError
from pushcen.methods import AsyncDFedAvg
from pushcen.runtime.line import Line
from pushcen.runtime.meeting import Meeting
from pushcen.runtime.service import Service
from pushcen.runtime.wire import News

from .world import LIMIT, World, run, until


async def gone(world, name, seconds=LIMIT):
    """Tell a peer to leave, and wait until it has."""
    world.node(name).leaving.set()
    async with asyncio.timeout(seconds):
        await world.lives[name]
    assert world.node(name).peer.gone


def answer_after(monkeypatch, seconds):
    """Let every peer take so long to answer a hello, or news, as `seconds` says of its name."""
    quick = Service._single

    def late(service, answer):
        handle = quick(service, answer)

        async def wait(caller, data, context):
            await asyncio.sleep(seconds(service._identity.name))
            return await handle(caller, data, context)

        return wait

    monkeypatch.setattr(Service, "_single", late)


def test_a_founder_without_mass_leaves(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        await world.start(*world.names, method=AsyncDFedAvg())
        await until(lambda: min(map(world.events, world.names)) > 2)
        await until(lambda: world.node("p1").members.contact("p0"))  # whom it tells that it leaves
        await gone(world, "p1")
        await until(lambda: "p1/1" in world.node("p0").peer.closed)
        await world.check(founded=0)

    run(story())


def test_peers_that_are_all_late_give_each_other_longer_and_one_of_them_leaves(tmp_path, monkeypatch):
    """So it is with peers on a machine that has no time for them: nobody's answer comes within `hello_timeout`."""
    answer_after(monkeypatch, lambda name: 0.5)

    async def story():
        world = World(tmp_path, pause=0.1, hello_timeout=0.2, patience=1.0)
        async with asyncio.timeout(60):
            await world.start(*world.names)
        await until(lambda: all(world.node(name).peer.credited for name in world.names), 60)
        await gone(world, "p2", 60)
        await world.check()

    run(story())


def test_who_leaves_does_not_wait_for_who_is_silent_and_has_nothing_of_it(tmp_path, monkeypatch):
    answer_after(monkeypatch, lambda name: 3600 if name == "p2" else 0)

    async def story():
        world = World(tmp_path, pause=0.05)
        first = [world.addresses[name] for name in ("p0", "p1")]
        await world.start("p0", "p1", join=first, settings={"hello_timeout": 60.0})
        await world.start("p2", live=False)
        world.node("p0").members.meet("p2", world.addresses["p2"], 0.0)
        await until(lambda: all(world.node(name).peer.credited for name in ("p0", "p1")))
        await until(lambda: "p2" in world.node("p0").channels._asking)
        await gone(world, "p0", 30)
        await world.check()

    run(story())


def test_who_has_left_is_not_met_again_by_a_hello_that_it_said_before(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        await world.start(*world.names)
        await until(lambda: all(world.node(name).peer.credited for name in world.names))
        last = world.node("p2").node.hello(None)
        await gone(world, "p2")
        await until(lambda: "p2/1" in world.node("p0").members.gone)
        world.node("p0").node.greet("p2", last)
        assert "p2" not in world.node("p0").members.all
        await world.check()

    run(story())


def test_who_is_exchanging_news_with_a_peer_that_leaves_goes_on(tmp_path, monkeypatch):
    """Its line to that peer is closed under the call, which fails; it is not this peer that was cancelled."""
    late, calls, gossip = set(), [], Line.gossip
    answer_after(monkeypatch, lambda name: 30.0 if name in late else 0.0)

    async def noted(line, *rest):
        calls.append(line.address)
        return await gossip(line, *rest)

    async def story():
        world = World(tmp_path, pause=0.02, hello_timeout=60.0, patience=0.1)
        await world.start(*world.names)
        await until(lambda: all(world.node("p0").members.contact(name) for name in ("p1", "p2")))
        late.add("p2")
        monkeypatch.setattr(Line, "gossip", noted)
        await until(lambda: world.addresses["p2"] in calls)
        world.node("p0").members.close("p2/1")
        await until(lambda: "p2" not in world.node("p0").channels._lines)
        told, events = len(calls), world.events("p0")
        await until(lambda: len(calls) > told + 1 or world.lives["p0"].done())
        await until(lambda: world.events("p0") > events + 2 or world.lives["p0"].done())
        assert not world.lives["p0"].done()

    run(story())


def test_a_peer_of_which_a_part_is_cancelled_ends_with_a_word(tmp_path, monkeypatch):
    async def cancelled(meeting):
        await asyncio.sleep(0.1)
        raise asyncio.CancelledError

    monkeypatch.setattr(Meeting, "gossip", cancelled)

    async def story():
        world = World(tmp_path, names=("p0",))
        await world.start("p0")
        with pytest.raises(TransientError, match="p0: something cancelled a part of this peer"):
            await world.lives["p0"]

    run(story())


def test_a_call_on_a_line_that_is_hung_up_has_failed_and_one_that_is_cancelled_is_cancelled(tmp_path, monkeypatch):
    answer_after(monkeypatch, lambda name: 30.0)

    async def story():
        world = World(tmp_path, names=("p0", "p1"), founders=("p1",))
        await world.start("p0", live=False)
        for end, error in (("close", UsageError), ("cancel", asyncio.CancelledError)):
            line = world.line("p1", "p0")
            call = asyncio.create_task(line.gossip(News(), 60.0))
            await asyncio.sleep(0.5)
            await line.close() if end == "close" else call.cancel()
            with pytest.raises(error):
                await call

    run(story())
