"""A member that makes mass up: honest pushes are never refused for it, and training goes on."""

import asyncio

from pushcen.learning import TrainingOptions
from pushcen.protocol import UNIT, Envelope
from pushcen.runtime.operator import deliver

from .test_hostile import piece, pieces
from .world import World, run, until

HONEST = ("p0", "p1", "p2")
FAST = TrainingOptions(lr=0.03)


async def inflate(world, name, payload):
    """Push shares just under the bound, as often as one may."""
    line, node, sequence = world.line("eve", name), world.node(name), 0
    most = node.generation.mass
    try:
        while True:
            sequence += 1
            total = node.peer.answer("eve/1").credited + most - 1
            envelope = Envelope("eve/1", f"{name}/1", 0, sequence, total, None)
            assert (await line.push(pieces(piece(envelope, payload)), 10)).refusal == ""
            await asyncio.sleep(0.02)
    finally:
        await line.close()


def pushes(world, outcome):
    return sum(world.node(name).metrics.pushes.labels(outcome)._value.get() for name in HONEST)


def test_who_makes_mass_up_refuses_nobody_and_is_got_rid_of(tmp_path):
    async def story():
        world = World(tmp_path, names=(*HONEST, "eve"), founders=HONEST, pause=0.05, pushes_per_second=1e6)
        nodes = await world.start(*HONEST, training=FAST, settings={"start_with": 2, "evaluate_every": 1})
        payload = nodes[0].client.learner.encode()[0].data
        attack = [asyncio.create_task(inflate(world, name, payload)) for name in HONEST]
        await until(lambda: all(node.peer.held > 50 * UNIT for node in nodes), 60)
        news = pushes(world, "news")
        await until(lambda: pushes(world, "news") > news + 20)
        await deliver(world.authority, world.authority.revoke("eve"), world.addresses["p0"])
        await deliver(world.authority, world.authority.forget("eve/1"), world.addresses["p0"])
        await until(lambda: all("eve/1" in node.peer.forgotten for node in nodes))
        await asyncio.gather(*attack, return_exceptions=True)  # they are turned away now
        news, events = pushes(world, "news"), [node.peer.events for node in nodes]
        await until(lambda: all(node.peer.events > before + 20 for node, before in zip(nodes, events, strict=True)), 60)
        assert pushes(world, "news") > news + 20
        assert pushes(world, "mass") == 0
        await until(lambda: min(node.metrics.accuracy._value.get() for node in nodes) > 0.85, 60)
        await world.stop()

    run(story(), 200)


def test_mass_beyond_what_a_float_sum_can_hold_is_merged_like_any_other(tmp_path):
    async def story():
        world = World(tmp_path, names=HONEST, pause=0.05)
        nodes = await world.start(*HONEST, settings={"start_with": 2, "evaluate_every": 1})
        await until(lambda: all(node.peer.events > 2 for node in nodes))
        nodes[0].peer.held += 2**90
        before = nodes[0].peer.events
        await until(lambda: nodes[0].peer.events > before + 20)
        await until(lambda: all(node.peer.held > 10 * UNIT for node in nodes))  # it spreads, bit by bit
        assert pushes(world, "mass") == 0
        assert sum(node.metrics.failed_events._value.get() for node in nodes) == 0
        await world.stop()

    run(story(), 120)
