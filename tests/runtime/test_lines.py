"""Many peers: each keeps lines to some of the others, which change; news reaches everybody, and no mass is stranded."""

import asyncio
from random import Random

import pytest

from pushcen.methods import PushCen
from pushcen.protocol import UNIT, Contact
from pushcen.runtime.members import FEW, Members
from pushcen.runtime.operator import deliver
from pushcen.runtime.options import RuntimeOptions

from .world import World, run, until

RECEIVERS = 3
KEPT = RECEIVERS + RuntimeOptions().hosts + 4
AT_ONCE = 4 + 2  # more for a moment: those who are called, few at a time, and who were kept till just now, in a call
SLOW = {"gossip_every": 0.5, "hello_every": 2.0, "hello_timeout": 10.0, "push_timeout": 60.0, "evaluate_every": 0}


def table(others, **settings):
    members = Members("me", RuntimeOptions(**{"hello_every": 10.0, **settings}), Random(0))
    members.keep_lines(RECEIVERS)
    for at in range(others):
        members.meet(f"p{at}", f"p{at}:7000", 0.0)
        members.heard(f"p{at}", Contact(f"p{at}/1", 1), 0.0)
    return members


def near(members):
    return {name for name in members.all if members.near(name)}


def test_few_are_all_kept_and_of_many_some_that_change_until_all_had_their_turn():
    assert len(near(table(FEW))) == FEW
    members, had = table(60), set()
    for turn in range(2000):
        before = near(members)
        members.due(10.0 * turn)
        assert len(near(members)) == KEPT
        assert len(before - near(members)) <= 1  # one after the other
        assert set(members.draw(RECEIVERS)) <= near(members)
        had |= near(members)
    assert had == set(members.all)


def test_who_is_silent_makes_room_at_once_and_is_tried_again_in_its_turn():
    members = table(30, retry_first=1.0, retry_last=8.0, give_up=1000)
    gone = [f"p{at}" for at in range(15)]
    for name in gone:
        members.silent(name, 0.0)
    members.due(0.1)
    assert near(members).isdisjoint(gone)
    assert len(near(members)) == KEPT
    asked = set()
    for turn in range(1, 300):
        for name in members.due(10.0 * turn):
            if name in gone:
                asked.add(name)
                members.silent(name, 10.0 * turn)
            else:
                members.heard(name, Contact(f"{name}/1", 1), 10.0 * turn)
    assert asked == set(gone)


def test_hellos_go_to_who_is_near_and_now_and_then_to_who_has_something_in_doubt():
    members = table(30)
    far = sorted(set(members.all) - near(members))
    owing = far[:2]
    asked = set(members.due(1000.0, lambda name: name in owing))
    assert asked - set(owing) <= near(members)
    assert set(owing) <= asked | near(members)


class Watched(World):
    """A world of many, which notes the most lines that there ever were."""

    def __init__(self, folder, count, **settings):
        super().__init__(folder, [f"p{at}" for at in range(count)], **{**SLOW, "pause": 0.5, **settings})
        self.most = self.most_of_one = 0

    def setup(self, name, **options):
        at = self.names.index(name)
        join = [self.addresses[other] for other in {*self.names[:2], self.names[max(at - 1, 0)]} if other != name]
        return super().setup(name, **{"join": join, "method": PushCen(clusters=4, receivers=RECEIVERS), **options})

    async def watch(self):
        while True:
            counts = [len(driver.channels._lines) for driver in self.drivers.values()]
            self.most, self.most_of_one = max(self.most, sum(counts)), max(self.most_of_one, *counts)
            await asyncio.sleep(0.05)


async def live_together(world, known):
    """Let many peers start, mix, hear of a revocation, restart, leave; every quantum is somewhere at the end."""
    names = world.names
    await world.start(*names[:2])
    for at in range(2, len(names), 8):
        await world.start(*names[at : at + 8])
    await until(lambda: all(len(world.node(name).members.all) >= known for name in names))
    await until(lambda: all(len(world.node(name).channels._lines) <= KEPT for name in names))
    watching = asyncio.create_task(world.watch())
    credited = {name: set() for name in names}

    def mixed():
        for name in names:
            credited[name] |= set(world.node(name).peer.credited)
        return all(len(senders) > RECEIVERS for senders in credited.values())

    await until(mixed)
    world.authority.issue("thief")
    await deliver(world.authority, world.authority.revoke("thief"), world.addresses[names[3]])
    await until(lambda: all(world.node(name).identity.revision == 1 for name in names))
    await world.stop(names[5])  # what was on its way to it is in doubt
    await world.start(names[5])
    stay, leaver = [name for name in names if name != names[7]], world.drivers[names[7]]
    leaver.leaving.set()
    await until(lambda: leaver.me.peer.gone)
    await until(lambda: all(leaver.me.peer.me in world.node(name).members.gone for name in stay))
    events = {name: world.events(name) for name in stay}
    await until(lambda: all(world.events(name) > events[name] + 2 for name in stay))
    watching.cancel()
    assert world.most_of_one <= KEPT + AT_ONCE
    found = await world.check()
    assert found.held + found.on_links == len(names) * UNIT


def test_twenty_peers_keep_some_lines_each_and_every_quantum(tmp_path):
    async def story():
        world = Watched(tmp_path, 20, pause=1.0)
        await live_together(world, known=FEW + 2)
        assert world.most < 20 * (KEPT + AT_ONCE)

    run(story())


@pytest.mark.slow
def test_sixty_four_peers_keep_some_lines_each_and_every_quantum(tmp_path):
    async def story():
        world = Watched(tmp_path, 64, pause=4.0, gossip_every=2.0, hello_every=5.0)
        await live_together(world, known=40)
        assert world.most < 64 * 63 / 4

    run(story(), 1500)
