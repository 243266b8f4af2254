"""Who leaves a network whose method moves no mass has nothing to hand over, and is gone at once."""

import asyncio

from pushcen.methods import AsyncDFedAvg

from .world import LIMIT, World, run, until


def test_a_founder_without_mass_leaves(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        await world.start(*world.names, method=AsyncDFedAvg())
        await until(lambda: min(map(world.events, world.names)) > 2)
        await until(lambda: world.node("p1").members.contact("p0"))  # whom it tells that it leaves
        world.node("p1").leaving.set()
        async with asyncio.timeout(LIMIT):
            await world.lives["p1"]
        assert world.node("p1").peer.gone
        await until(lambda: "p1/1" in world.node("p0").peer.closed)
        await world.check(founded=0)

    run(story())
