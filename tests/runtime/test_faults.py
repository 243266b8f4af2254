"""What a network does to those on it: nobody waits, nothing is lost, memory stays bounded."""

import asyncio
import contextlib
import datetime
import random

import grpc
import pytest

from pushcen.errors import DiskError, DivergenceError, TaskError
from pushcen.protocol import UNIT
from pushcen.runtime.channels import Line
from pushcen.runtime.security.trust import utc
from pushcen.runtime.state_folder import StateFolder

from .wires import Wired, Wires
from .world import LIMIT, World, run, until

NAMES = ("p0", "p1", "p2", "p3")


@contextlib.asynccontextmanager
async def wired(folder, **settings):
    """Four peers that train, all calls over wires that can be cut."""
    options = {"pause": 0.05, "hello_timeout": 0.5, "push_timeout": 2.0, "start_with": 3, **settings}
    world = World(folder, names=NAMES, **options)
    wires = Wires(world.addresses)
    await wires.lay()
    world.identity = lambda name: Wired(world.certs(name), wires)
    try:
        await world.start(*NAMES)
        await until(lambda: all(world.events(name) > 3 for name in NAMES))
        yield world, wires
    finally:
        await world.stop()
        await wires.take_up()


async def keep_up(world, names, usual):
    """Wait until they are at least a third as fast as usual: a machine busy with something else may hide it a while."""
    async with asyncio.timeout(LIMIT):
        while await pace(world, names) <= usual / 3:
            pass


async def pace(world, names, seconds=2.0):
    """How many events the slowest of these peers has in a while."""
    before = {name: world.events(name) for name in names}
    await asyncio.sleep(seconds)
    return min(world.events(name) - before[name] for name in names)


def test_a_network_cut_in_two_goes_on_and_grows_together_again(tmp_path):
    async def story():
        async with wired(tmp_path, give_up=4, retry_last=0.3) as (world, wires):
            usual = await pace(world, NAMES)
            cut = wires.between(NAMES[:2], NAMES[2:])
            wires.set("cut", cut)
            await asyncio.sleep(0.5)
            await keep_up(world, NAMES, usual)
            await until(lambda: "p2" not in world.node("p0").members.all)  # given up
            owed = [node.peer.me for node in map(world.node, NAMES[2:])]
            wires.set("pass", cut)
            await until(lambda: all(len(world.node(name).members.online()) == 3 for name in NAMES))
            await until(lambda: not any(peer in world.node("p0").peer.unsettled for peer in owed))
            await world.check()

    run(story())


@pytest.mark.parametrize("mode", ["stall", 5_000], ids=["accepts and never answers", "slow"])
def test_a_bad_neighbour_delays_nobody_and_takes_no_memory(tmp_path, mode):
    async def story():
        async with wired(tmp_path) as (world, wires):
            usual = await pace(world, NAMES[:3])
            wires.set(mode, [(name, "p3") for name in NAMES[:3]])
            await keep_up(world, NAMES[:3], usual)
            for name in NAMES[:3]:
                neighbours = world.drivers[name].channels
                assert len(neighbours._tasks) < 20
                assert sum(map(len, neighbours._waiting.values())) <= len(NAMES)
            if mode == "stall":
                swallowed = world.node("p0").peer.sent.get("p3/1", 0)
                await asyncio.sleep(2)
                assert world.node("p0").peer.sent.get("p3/1", 0) == swallowed  # no new mass goes to who is silent
            wires.set("pass", [(name, "p3") for name in NAMES[:3]])
            found = await world.check()
            assert found.held + found.on_links == 4 * UNIT

    run(story())


def test_a_third_of_all_pushes_ends_in_doubt_and_nothing_is_lost(tmp_path, monkeypatch):
    rng, push = random.Random(0), Line.push
    outcomes = {"lost": 0, "answer lost": 0, "passed": 0}

    async def unsure(self, pieces, timeout):
        chance = rng.random()
        if chance < 0.15:
            outcomes["lost"] += 1
            if not isinstance(pieces, bytes):
                await pieces.aclose()
            raise TimeoutError
        answer = await push(self, pieces, timeout)
        if chance < 0.3:
            outcomes["answer lost"] += 1
            raise TimeoutError
        outcomes["passed"] += 1
        return answer

    async def story():
        async with wired(tmp_path) as (world, _):
            monkeypatch.setattr(Line, "push", unsure)
            await until(lambda: sum(outcomes.values()) > 150)
            monkeypatch.setattr(Line, "push", push)
            before = {name: world.events(name) for name in NAMES}
            await until(lambda: all(world.events(name) > before[name] + 3 for name in NAMES))
            found = await world.check()
            assert found.held + found.on_links == 4 * UNIT

    run(story())
    assert min(outcomes.values()) > 10


@pytest.mark.parametrize("hours", [-20, 20])
def test_clocks_that_differ_by_most_of_a_day_do_no_harm(tmp_path, hours, monkeypatch):
    async def story():
        world = World(tmp_path, pause=0.02)
        clock = lambda: utc() + datetime.timedelta(hours=hours)  # noqa: E731

        def late(name):
            identity = Wired(world.certs(name), None)
            identity.channel = super(Wired, identity).channel
            identity.trust.clock = clock if name == "p0" else utc
            return identity

        world.identity = late
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 5 for name in world.names))
        await until(lambda: all(len(world.node(name).members.online()) == 2 for name in world.names))
        await world.check()

    run(story())


def test_a_certificate_that_is_revoked_while_its_peer_runs_is_refused_everywhere(tmp_path):
    async def story():
        from pushcen.runtime.operator import deliver

        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        await deliver(world.authority, world.authority.revoke("p2"), world.addresses["p0"])
        await until(lambda: world.node("p1").identity.revision == 1)  # p0 has passed it on
        line = world.line("p2", "p1")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await line.hello(world.node("p2").hello(None), LIMIT)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "revoked" in refused.value.details()
        await line.close()
        heard = world.events("p1")
        await until(lambda: world.events("p1") > heard + 1)  # it is committed with the next event
        await world.stop()
        await world.start("p1", live=False, join=[])  # and it is known after a restart
        assert world.node("p1").identity.revision == 1
        await world.stop()

    run(story())


@pytest.mark.parametrize("kind", [DivergenceError, TaskError])
def test_a_payload_that_makes_an_event_fail_costs_that_event_only(tmp_path, monkeypatch, kind):
    from pushcen.learning import Learner

    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        step, fails = Learner.step, ["p0"] * 2

        def poisoned(self, work, **options):
            outcome = step(self, work, **options)
            if self.client in fails:
                fails.remove(self.client)
                raise kind("the loss is nan")
            return outcome

        monkeypatch.setattr(Learner, "step", poisoned)
        await until(lambda: not fails)
        before = world.events("p0")
        await until(lambda: world.events("p0") > before + 5)
        assert world.node("p0").peer.boot == 3
        assert world.node("p0").peer.most == 3 * UNIT  # the bound on what is under way holds in a new boot
        assert world.node("p0").metrics.failed_events._value.get() == 2
        await world.check()

    run(story())


def test_a_boot_is_durable_before_anything_is_answered_in_it(tmp_path, monkeypatch):
    """An event fails, and the disk has no room for the new boot: what comes meanwhile is not accepted in its name."""
    from pushcen.learning import Learner

    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        nodes = await world.start("p0", "p1")
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        step, commit, full = Learner.step, StateFolder.commit, asyncio.Event()

        def poisoned(self, work, **options):
            if self.client == "p0":
                full.set()
                raise DivergenceError("the loss is nan")
            return step(self, work, **options)

        def no_room(self, values, files=None):
            if self.folder.name == "p0" and full.is_set():
                raise DiskError("no room")
            commit(self, values, files)

        monkeypatch.setattr(Learner, "step", poisoned)
        monkeypatch.setattr(StateFolder, "commit", no_room)
        await until(lambda: nodes[0].metrics.disk_waits._value.get() > 1)
        before = world.events("p1")
        await until(lambda: world.events("p1") > before + 5)
        assert [node.members.contact("p0").boot for node in nodes[1:]] == [1]
        monkeypatch.setattr(Learner, "step", step)
        await world.stop("p0")
        monkeypatch.setattr(StateFolder, "commit", commit)
        [node] = await world.start("p0")
        await until(lambda: world.events("p0") > 5)
        assert node.peer.boot == 2
        await world.check()

    run(story())


def test_a_commit_that_comes_in_between_has_nothing_of_an_event_without_its_weights(tmp_path):
    """Records and references are committed as they come, also while the end of an event waits for the disk."""

    async def story():
        world = World(tmp_path, names=("p0",))
        [node] = await world.start("p0", live=False)
        await node.trainer.event()
        written, commit = [], node.store.commit

        def noted(values, files=None):
            commit(values, files)
            saved = node.store.load()
            written.append((saved["peer"]["events"], saved["learner"]["events"]))

        node.store.commit = noted
        lock = node._committing
        async with lock:
            works = [asyncio.create_task(node.commit()), asyncio.create_task(node.trainer.event())]
            await until(lambda: len(lock._waiters or ()) == 2)
        await asyncio.gather(*works)
        assert written == [(1, 1), (2, 2)]
        await world.check(founded=1)

    run(story())
