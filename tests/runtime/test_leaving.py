"""Who leaves hands everything over, however late or silent others are, and says whom it waits for."""

import asyncio

from pushcen.methods import AsyncDFedAvg
from pushcen.runtime.service import Service

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
