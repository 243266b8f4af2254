"""Peers that meet, train, come and go: real certificates and sockets, in one process."""

import asyncio
import shutil

import pytest

from pushcen.errors import LedgerError, NetworkError
from pushcen.methods import AsyncDFedAvg, DivShare, Epidemic, PushCen, Sgp, SwiftRandom
from pushcen.protocol import UNIT, epoch_of
from pushcen.runtime.channels import Line
from pushcen.runtime.claims import read_word
from pushcen.runtime.kept import weights_of
from pushcen.runtime.operator import deliver
from pushcen.runtime.wire import Signed

from .tasks import lenet
from .world import LIMIT, World, run, until


def test_founders_train_together_and_every_quantum_is_somewhere(tmp_path):
    async def story():
        world = World(tmp_path)
        await world.start("p0", "p1", "p2", settings={"start_with": 2})
        await until(lambda: all(world.events(name) >= 8 for name in world.names))
        await until(lambda: all(world.node(n).metrics.received.labels("news")._value.get() > 0 for n in world.names))
        found = await world.check()
        assert found.held + found.on_links == 3 * UNIT
        assert set(weights_of(world.state("p0"))) == {"0.weight", "0.bias", "2.weight", "2.bias"}

    run(story())


@pytest.mark.parametrize(
    "method", [AsyncDFedAvg(), SwiftRandom(), DivShare(parts=2), Epidemic()], ids=lambda m: type(m).name
)
def test_methods_without_mass_run_too(tmp_path, method):
    async def story():
        world = World(tmp_path)
        await world.start("p0", "p1", "p2", method=method, settings={"start_with": 2})
        await until(lambda: all(world.events(name) >= 6 for name in world.names))
        await until(lambda: all(world.node(n).metrics.received.labels("news")._value.get() > 0 for n in world.names))
        assert all(world.node(name).metrics.refusals.labels("malformed")._value.get() == 0 for name in world.names)
        await world.check(founded=0)

    run(story())


def test_sgp_keeps_every_quantum(tmp_path):
    async def story():
        world = World(tmp_path)
        await world.start("p0", "p1", "p2", events=6, method=Sgp(receivers=2), settings={"start_with": 2})
        await until(lambda: all(world.events(name) == 6 for name in world.names))
        found = await world.check()
        assert found.held + found.on_links == 3 * UNIT

    run(story())


@pytest.mark.parametrize("chunk_kb", [16, 1024], ids=["in pieces", "in one"])
def test_a_model_arrives_in_one_message_or_in_many(tmp_path, chunk_kb, monkeypatch):
    sent, push = set(), Line.push

    async def noted(self, pieces, timeout):
        sent.add(isinstance(pieces, bytes))
        return await push(self, pieces, timeout)

    async def story():
        monkeypatch.setattr(Line, "push", noted)
        world = World(tmp_path, names=("p0", "p1"), task=lenet, chunk_kb=chunk_kb)
        await world.start("p0", "p1", settings={"start_with": 1})
        await until(lambda: all(world.node(n).metrics.received.labels("news")._value.get() > 0 for n in world.names))
        assert all(world.node(name).metrics.refusals.labels("malformed")._value.get() == 0 for name in world.names)
        await world.check()

    run(story())
    assert sent == {chunk_kb == 1024}


def test_who_joins_late_starts_with_nothing_and_adopts(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "late"), founders=("p0", "p1"), pause=0.02)
        await world.start("p0", "p1")
        await until(lambda: world.events("p0") > 2)
        [late] = await world.start("late", join=[world.addresses["p0"]])
        assert late.peer.founded == 0
        await until(lambda: late.peer.held > 0)
        await until(lambda: "late" in world.node("p1").members.all)  # by gossip: it only joined through p0
        await world.check()

    run(story())


def test_a_restart_keeps_the_epoch_and_takes_a_new_boot(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p0") > 3)
        await world.stop("p0")
        [node] = await world.start("p0")
        assert (node.peer.me, node.peer.boot, node.peer.most) == ("p0/1", 2, 3 * UNIT)
        assert world.events("p0") >= 3  # all but an event whose commit the stop may have come before
        before = world.events("p0")
        await until(lambda: world.events("p0") > before + 3)
        await world.check()

    run(story())


def test_a_copied_back_backup_gets_a_new_epoch_and_no_mass(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p0") > 2)
        await world.stop("p0")
        shutil.copytree(world.state("p0"), tmp_path / "backup")
        await world.start("p0")
        await until(lambda: world.events("p0") > 6)
        await world.stop("p0")
        shutil.rmtree(world.state("p0"))
        shutil.copytree(tmp_path / "backup", world.state("p0"))
        [node] = await world.start("p0")
        await until(lambda: epoch_of(node.peer.me) > 1)  # once a neighbour has shown it its own word
        assert node.peer.founded == 0
        await until(lambda: node.peer.held > 0)  # it adopts what it is sent
        await deliver(world.authority, world.authority.forget("p0/1"), world.addresses["p1"])
        await until(lambda: all("p0/1" in world.node(name).peer.forgotten for name in world.names))
        found = await world.check()
        assert found.written_off > 0
        assert found.missing == {}

    run(story())


def test_a_copy_is_a_copy_once(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p0") > 2)
        await world.stop("p0")
        shutil.copytree(world.state("p0"), tmp_path / "copy")
        [node] = await world.start("p0", state=tmp_path / "copy")
        await until(lambda: not node.stale and node.peer.held > 0)
        me = node.peer.me
        assert me != "p0/1"
        await world.stop("p0")
        [node] = await world.start("p0", state=tmp_path / "copy")
        assert (node.peer.me, node.peer.boot) == (me, 2)
        await world.stop()

    run(story(), 120)


@pytest.mark.parametrize("boots", [1, 3], ids=["in one boot", "over several boots"])
def test_a_restored_disk_is_found_out_by_what_others_know(tmp_path, boots):
    """A snapshot of a whole disk leaves no trace in the folder; then it is the others who know better."""

    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p0") > 2)
        await world.stop("p0")
        old = {path.name: path.read_bytes() for path in world.state("p0").iterdir()}
        for _ in range(boots):
            await world.start("p0")
            goal = world.events("p0") + 4
            await until(lambda goal=goal: world.events("p0") > goal and returned(world.node("p1")) >= goal)
            await world.stop("p0")
        await world.stop("p1")
        await world.start("p1")  # what it knows is durable
        for path in world.state("p0").iterdir():
            if path.name not in old:
                path.unlink()
        for name, data in old.items():
            (world.state("p0") / name).write_bytes(data)  # into the same files
        [node] = await world.start("p0")
        await until(lambda: epoch_of(node.peer.me) > 1)
        assert node.peer.founded == 0
        assert all(epoch_of(world.node(name).peer.me) == 1 for name in ("p1", "p2"))
        await deliver(world.authority, world.authority.forget("p0/1"), world.addresses["p1"])
        await until(lambda: all("p0/1" in world.node(name).peer.forgotten for name in world.names))
        await world.stop()
        assert world.audit().violations == []

    def returned(node):
        """How far p0 has come, by what this node would return to it and has made durable."""
        words = [row for key, row in node.store.load().items() if key == "claim p0"]
        return max((read_word(Signed.FromString(bytes.fromhex(row))).progress.sequence for row in words), default=0)

    run(story(), 120)


def test_a_moved_folder_goes_on_if_its_owner_says_so(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0",))
        await world.start("p0")
        await until(lambda: world.events("p0") > 2)
        await world.stop("p0")
        shutil.copytree(world.state("p0"), tmp_path / "elsewhere")
        [node] = await world.start("p0", state=tmp_path / "elsewhere", moved=True)
        assert (node.peer.me, node.peer.held) == ("p0/1", UNIT)
        await world.stop()

    run(story())


def test_a_founder_that_lost_its_state_founds_nothing_again(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p0") > 2)
        await until(lambda: "p0/1" in world.node("p1").peer.credited)
        await world.stop("p0")
        shutil.rmtree(world.state("p0"))
        [node] = await world.start("p0")
        assert epoch_of(node.peer.me) > 1
        assert node.peer.founded == 0
        await world.stop()

    run(story())


def test_who_leaves_hands_everything_over(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p2") > 3)
        world.node("p2").leaving.set()
        async with asyncio.timeout(LIMIT):
            await world.lives["p2"]
        assert world.node("p2").peer.gone
        await until(lambda: all("p2/1" in world.node(name).peer.closed for name in ("p0", "p1")))
        await world.stop("p2")
        [node] = await world.start("p2")  # and comes back: with nothing, in a new epoch
        await until(lambda: not node.stale and node.peer.held > 0)
        assert epoch_of(node.peer.me) > 1
        found = await world.check()
        assert found.written_off == 0

    run(story())


def test_a_forgotten_peer_that_comes_back_takes_a_new_epoch(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p2") > 2)
        await world.stop("p2")
        await deliver(world.authority, world.authority.forget("p2/1"), world.addresses["p0"])
        await until(lambda: "p2/1" in world.node("p1").peer.forgotten)
        [node] = await world.start("p2")
        await until(lambda: epoch_of(node.peer.me) > 1 and node.peer.held > 0)
        await world.check()

    run(story())


def test_a_run_that_is_set_up_in_another_way_is_refused_and_told_what_differs(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "late"), founders=("p0", "p1"))
        await world.start("p0", join=[])
        with pytest.raises(NetworkError, match=r"method\.clusters = 4 there, 8 here"):
            await world.start("p1", method=PushCen(clusters=8))
        [late] = await world.start("late", method=PushCen(clusters=8))
        await until(lambda: "p0" in late.members.all and late.members.all["p0"].refusal)
        assert late.members.all["p0"].refusal == "method.clusters = 4 there, 8 here"
        assert world.node("p0").metrics.refusals.labels("run")._value.get() > 0
        await world.stop()

    run(story())


def test_a_state_folder_is_for_one_peer_and_one_run(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        await world.start("p0", join=[])
        with pytest.raises(LedgerError, match="another process"):
            await world.start("p1", state=world.state("p0"))
        await world.stop("p0")
        with pytest.raises(LedgerError, match=r"method\.clusters = 4 there, 8 here"):
            await world.start("p0", method=PushCen(clusters=8))
        with pytest.raises(LedgerError, match="belongs to p0"):
            await world.start("p1", state=world.state("p0"))

    run(story())
