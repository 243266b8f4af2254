"""A network that is founded anew: one unit for each founder, once, whoever was away or lost its disk."""

import asyncio
import random
import shutil

import pytest

from pushcen.errors import LedgerError
from pushcen.protocol import UNIT, Envelope
from pushcen.runtime.epochs import NextEpoch
from pushcen.runtime.network import generation_of
from pushcen.runtime.operator import deliver
from pushcen.runtime.state_folder import StateFolder, read_state
from pushcen.runtime.wire import Hello

from .test_hostile import piece, pieces, state_of, victim
from .world import World, run, until

FIRST = 1 << 48 | 1


def refusals(node, reason):
    return node.metrics.refusals.labels(reason)._value.get()


def in_generation(world, number, *names):
    return all(generation_of(world.node(name).peer.me) == number and not world.node(name).stale for name in names)


async def trains_on(world, *names, events=3):
    before = {name: world.events(name) for name in names}
    await until(lambda: all(world.events(name) > before[name] + events for name in names), 60)


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def put_back(folder, files):
    """Write a snapshot into the very same files, as restoring a disk does."""
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_all_mass_is_founded_anew_and_training_goes_on(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 3 for name in world.names))
        steps = world.node("p2").client.learner.events
        await deliver(world.authority, world.authority.refound(["p0", "p1"]), world.addresses["p0"])
        await until(lambda: in_generation(world, 1, *world.names), 60)
        assert [world.node(name).peer.me for name in ("p0", "p1")] == [f"p0/{FIRST}", f"p1/{FIRST}"]
        assert world.node("p2").peer.founded == 0
        assert {world.node(name).peer.most for name in world.names} == {2 * UNIT}
        assert world.node("p2").client.learner.events >= steps  # from the models as they are
        await until(lambda: world.node("p2").peer.held > 0, 60)
        await trains_on(world, *world.names)
        found = await world.check(founded=2)
        assert found.held + found.on_links == 2 * UNIT
        await world.start(*world.names)  # and after a restart it is the same generation, in the next boot
        assert world.node("p0").peer.me == f"p0/{FIRST}"
        await trains_on(world, *world.names)
        await world.check(founded=2)

    run(story(), 150)


def test_who_was_away_learns_of_it_from_the_first_contact(tmp_path):
    async def story():
        names = ("p0", "p1", "p2", "p3")
        world = World(tmp_path, names=names, pause=0.02)
        await world.start(*names)
        await until(lambda: all(world.events(name) > 3 for name in names))
        await world.stop("p2", "p3")
        await deliver(world.authority, world.authority.refound(["p0", "p2"]), world.addresses["p1"])
        await until(lambda: in_generation(world, 1, "p0", "p1"), 60)
        assert world.audit().founded == UNIT
        await world.start("p2", "p3")
        assert {world.node(name).peer.me for name in ("p2", "p3")} == {"p2/1", "p3/1"}
        await until(lambda: in_generation(world, 1, *names), 60)
        assert [world.node(name).peer.founded for name in names] == [UNIT, 0, UNIT, 0]
        await until(lambda: all(world.node(name).peer.held for name in names), 60)
        await trains_on(world, *names)
        found = await world.check(founded=2)
        assert found.held + found.on_links == 2 * UNIT
        past = read_state(world.state("p2"))["past"]
        assert [state["peer"] for state in past] == ["p2/1"]

    run(story(), 150)


@pytest.mark.parametrize("lost", ["folder", "snapshot"])
def test_a_founder_of_the_new_generation_founds_it_once(tmp_path, lost):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 2 for name in world.names))
        await world.stop("p0")
        old = snapshot(world.state("p0"))
        await world.start("p0")
        await deliver(world.authority, world.authority.refound(world.names), world.addresses["p0"])
        await until(lambda: in_generation(world, 1, *world.names), 60)
        await until(lambda: any(link.startswith("p0/") for link in world.node("p1").peer.credited), 60)
        await world.stop("p0")
        if lost == "folder":
            shutil.rmtree(world.state("p0"))
        else:
            put_back(world.state("p0"), old)
        [node] = await world.start("p0")
        await until(lambda: in_generation(world, 1, "p0") and node.peer.me != f"p0/{FIRST}", 60)
        assert node.peer.founded == 0
        await deliver(world.authority, world.authority.forget(f"p0/{FIRST}"), world.addresses["p1"])
        await until(lambda: all(f"p0/{FIRST}" in world.node(name).peer.forgotten for name in world.names), 60)
        found = await world.check(founded=3)
        assert found.written_off > 0

    run(story(), 150)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_leaves_the_old_generation_or_the_new_one_and_never_two_units(tmp_path, moment, monkeypatch):
    """Killed before or after the commit: record, epoch and unit are in the ledger together, or not at all."""
    commit = StateFolder.commit

    def crash(self, values, files=None):
        if self.folder.name == "p0" and generation_of(values.get("peer", {"peer": "p0/0"})["peer"]) == 1:
            if moment == "after":
                commit(self, values, files)
            raise LedgerError("killed")
        commit(self, values, files)

    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 2 for name in world.names))
        await world.stop("p1")
        monkeypatch.setattr(StateFolder, "commit", crash)
        record = world.authority.refound(["p0", "p1"])
        await deliver(world.authority, record, world.addresses["p0"])
        await until(lambda: world.lives["p0"].done(), 60)
        monkeypatch.setattr(StateFolder, "commit", commit)
        await world.stop("p0")
        saved = read_state(world.state("p0"))
        entered = generation_of(saved["peer"]["peer"])
        assert entered == (1 if moment == "after" else 0)
        assert (record.SerializeToString().hex() in saved["records"]) == bool(entered)
        await world.start("p0", "p1")
        await until(lambda: in_generation(world, 1, *world.names), 60)
        assert [world.node(name).peer.founded for name in world.names] == [UNIT, UNIT, 0]
        await trains_on(world, *world.names)
        found = await world.check(founded=2)
        assert found.held + found.on_links == 2 * UNIT

    run(story(), 150)


def test_an_old_sender_is_refused_and_shown_the_record(tmp_path):
    async def story():
        async with victim(tmp_path) as (world, node, line, payload):
            world.lives["ann"] = asyncio.create_task(world.drivers["ann"].run(0))
            record = world.authority.refound(["ann"])
            await deliver(world.authority, record, world.addresses["ann"])
            await until(lambda: in_generation(world, 1, "ann"))
            before = state_of(node)
            for receiver in ("ann/1", node.peer.me):
                envelope = Envelope("eve/1", receiver, 0, 5, UNIT // 2, None)
                answer = await line.push(pieces(piece(envelope, payload)), 5)
                assert (answer.refusal, answer.refound) == ("generation", record)
            hello = Hello(major=1, peer="eve/1", boot=1, address="127.0.0.1:9", run=b"another method by then")
            answer = await line.hello(hello, 5)
            assert (answer.refusal, answer.refound) == ("generation", record)
            assert state_of(node) == before
            assert refusals(node, "generation") == 3

    run(story())


def test_each_founder_has_one_unit_whoever_stops_and_starts_when(tmp_path):
    """Three times over: some are down when the record comes, some stop and start at odd moments after it."""

    async def story():
        names, rng = ("p0", "p1", "p2", "p3"), random.Random(3)
        world = World(tmp_path, names=names, pause=0.02)
        for number in (1, 2, 3):
            await world.start(*names)
            await until(lambda: all(world.events(name) > 2 for name in names), 60)
            listed = sorted(rng.sample(names, rng.randint(1, 4)))
            up = rng.sample(names, rng.randint(1, 3))
            await world.stop(*set(names).difference(up))
            await deliver(world.authority, world.authority.refound(listed), world.addresses[up[0]])
            for name in rng.choices(names, k=4):
                await asyncio.sleep(rng.random() * 0.3)
                await (world.stop(name) if name in world.drivers else world.start(name))
            await world.start(*set(names).difference(world.drivers))
            await until(lambda number=number: in_generation(world, number, *names), 60)
            await until(lambda: all(world.node(name).peer.held for name in names), 60)
            assert [name for name in names if world.node(name).peer.founded] == listed
            found = await world.check(founded=len(listed))
            assert found.held + found.on_links == len(listed) * UNIT

    run(story(), 300)


def test_who_is_leaving_leaves_in_the_new_generation(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 2 for name in world.names))
        await world.stop("p0", "p1")
        leaver = world.node("p2")
        leaver.leaving.set()
        await until(lambda: leaver.peer.status == "leaving", 60)  # and stays: there is nobody to hand anything over to
        await deliver(world.authority, world.authority.refound(world.names), world.addresses["p2"])
        await until(lambda: leaver.peer.me == f"p2/{FIRST}" and leaver.peer.status == "leaving", 60)
        await world.start("p0", "p1")
        await until(lambda: leaver.peer.gone, 60)
        await world.lives["p2"]
        found = await world.check(founded=3)
        assert found.held + found.on_links == 3 * UNIT

    run(story(), 150)


def test_a_newer_generation_that_comes_in_the_middle_is_asked_for_first(tmp_path, monkeypatch):
    """A peer that is about to enter one generation hears of the next: it founds only what it has asked about."""

    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: all(world.events(name) > 2 for name in world.names))
        node = world.node("p0")
        first, second = world.authority.refound(world.names), world.authority.refound(["p0"])
        asked = []
        real = NextEpoch.ask_again

        async def meanwhile(epochs):
            name, records = epochs._name, epochs._records
            asked.append((name, records.next.number))
            await real(epochs)
            if name == "p0" and records.next.number == 1:
                node.keep(second)

        monkeypatch.setattr(NextEpoch, "ask_again", meanwhile)
        node.keep(first)
        await until(lambda: in_generation(world, 2, *world.names), 60)
        assert [one for one in asked if one[0] == "p0"] == [("p0", 1), ("p0", 2)]
        assert [world.node(name).peer.founded for name in world.names] == [UNIT, 0, 0]
        await trains_on(world, *world.names)
        found = await world.check(founded=1)
        assert found.held + found.on_links == UNIT

    run(story(), 120)


def test_a_crash_between_two_generations_that_cross_leaves_a_ledger_that_opens(tmp_path, monkeypatch):
    """A peer of generation 1 is about to enter 2, hears of 3, and is killed: it is in 1, and its ledger shows why."""

    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        world.node("p0").keep(world.authority.refound(world.names))
        await until(lambda: in_generation(world, 1, *world.names), 60)
        await world.stop("p1", "p2")
        node, second, third = world.node("p0"), world.authority.refound(["p0"]), world.authority.refound(world.names)
        real = NextEpoch.ask_again

        async def meanwhile(epochs):
            if node.records.next.number == 3:  # it has committed, and is killed before it enters anything
                killed.set()
                await asyncio.Event().wait()
            await real(epochs)
            node.keep(third)
            node.unheard.clear()

        killed = asyncio.Event()
        monkeypatch.setattr(NextEpoch, "ask_again", meanwhile)
        node.keep(second)
        await killed.wait()
        await world.stop("p0")
        assert generation_of(read_state(world.state("p0"))["peer"]["peer"]) == 1
        monkeypatch.setattr(NextEpoch, "ask_again", real)
        await world.start(*world.names)
        world.node("p0").keep(third)
        await until(lambda: in_generation(world, 3, *world.names), 60)
        assert [world.node(name).peer.founded for name in world.names] == [UNIT] * 3
        await world.check(founded=3)

    run(story(), 150)
