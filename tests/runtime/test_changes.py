"""A method that the authority's record changes for a whole network: who is away follows, and nobody is led to code."""

import asyncio
import contextlib
from functools import partial
from time import monotonic

import pytest
import torch
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import CertificateError, OptionError
from pushcen.protocol import UNIT
from pushcen.runtime.changes import NewSettings
from pushcen.runtime.local import LocalNetwork
from pushcen.runtime.network import Generation, generation_of
from pushcen.runtime.operator import deliver
from pushcen.runtime.peer import run_peer
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.setup import peer_config
from pushcen.runtime.state_folder import read_state
from pushcen.runtime.status import read_status

from .world import LIMIT, World, run, until, wait_until

TINY = "tests.runtime.tasks:tiny"


class Peers(World):
    """Peers that start again by themselves when the network's settings change, as processes do."""

    own = ("method.clusters=4",)

    def setup(self, name, changes=None, **options):
        config = peer_config(TINY, self.own, changes)
        more = {"method": config.method, "training": config.training, "configure": partial(self.setup, name)}
        return super().setup(name, **{**more, **options})

    def begin(self, *names):
        for name in names:
            self.lives[name] = asyncio.create_task(run_peer(self.setup(name)))

    async def end(self, *names):
        for name in names or list(self.lives):
            life = self.lives.pop(name)
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life

    async def stop(self, *names):
        await self.end(*names)

    def events(self, name):
        return self.saved(name).get("learner", {}).get("events", 0)

    def saved(self, name):
        return read_state(self.state(name)) if (self.state(name) / "ledger.db").exists() else {}

    def runs(self, name, generation, **options):
        """Whether a peer is in a generation, with these options of its method."""
        saved = self.saved(name)
        if "about" not in saved or "peer" not in saved or self.lives[name].done():
            return False
        facts = [saved["about"].get(f"method.{key}") == value for key, value in options.items()]
        return generation_of(saved["peer"]["peer"]) == generation and all(facts)

    async def train(self, *names, more=2):
        before = {name: self.events(name) for name in names}
        await until(lambda: all(self.events(name) > before[name] + more for name in names))


def test_a_change_of_the_method_reaches_who_is_there_and_later_who_was_away(tmp_path):
    async def story():
        world = Peers(tmp_path, names=("p0", "p1", "p2", "p3"), pause=0.05)
        world.begin(*world.names)
        await world.train(*world.names)
        await world.end("p2", "p3")
        record = world.authority.refound(["p0", "p2"], settings={"method.clusters": "8"})
        await deliver(world.authority, record, world.addresses["p1"])
        await until(lambda: all(world.runs(name, 1, clusters="8") for name in ("p0", "p1")))
        counted = world.events("p0")
        await world.train("p0", "p1")
        assert world.events("p0") > counted  # it goes on counting
        world.begin("p2", "p3")  # with the config that they had
        await until(lambda: all(world.runs(name, 1, clusters="8") for name in world.names))
        await world.train(*world.names)
        await world.end()
        world.begin(*world.names)  # the record counts, not the config, from now on
        await world.train(*world.names)
        assert all(world.runs(name, 1, clusters="8") for name in world.names)
        found = await world.check(founded=2)
        assert found.held + found.on_links == 2 * UNIT

    run(story())


def test_a_peer_that_would_be_led_to_code_ends_and_says_so_and_its_state_is_as_it_was(tmp_path):
    async def story():
        world = Peers(tmp_path, names=("p0", "p1"), pause=0.05)
        world.begin("p0", "p1")
        await world.train("p0", "p1")
        record = world.authority.refound(["p0", "p1"], settings={"method.name": "os:system"})
        await deliver(world.authority, record, world.addresses["p0"])
        await until(lambda: world.lives["p0"].done())
        error = world.lives["p0"].exception()
        assert isinstance(error, OptionError)
        assert "method.name = 'os:system': is code, which only this peer's own config may name" in str(error)
        assert "which this peer cannot take over" in read_status(world.state("p0")).ended
        shown = CliRunner().invoke(app, ["status", str(world.state("p0"))])
        assert (shown.exit_code, "cannot take over" in " ".join(shown.output.split())) == (2, True)
        saved = world.saved("p0")
        assert (saved["peer"]["peer"], saved["about"]["method.clusters"]) == ("p0/1", "4")
        world.lives.pop("p0")
        await until(lambda: world.lives["p1"].done())  # it was told before p0 ended
        world.lives.pop("p1")

    run(story())


def test_who_did_not_answer_last_time_hears_of_new_settings_before_a_peer_ends(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        p0, p1 = await world.start("p0", "p1", live=False)
        p0.members.meet("p1", world.addresses["p1"], monotonic())
        p0.members.silent("p1", monotonic(), "it is starting")
        p0.keep(world.authority.refound(["p0", "p1"], settings={"method.clusters": "8"}))
        with pytest.raises(NewSettings):
            await p0.epochs.renew()
        assert p1.records.newest.settings == {"method.clusters": "8"}

    run(story())


def test_new_weights_are_those_that_the_task_begins_with(tmp_path):
    async def story():
        world = Peers(tmp_path, names=("p0", "p1"), pause=0.05)
        world.begin("p0", "p1")
        await world.train("p0", "p1")
        record = world.authority.refound(["p0", "p1"], settings={"method.name": "push-sum"}, new_weights=True)
        await deliver(world.authority, record, world.addresses["p0"])
        await until(lambda: all(world.saved(name)["about"]["method"] == "push-sum" for name in world.names))
        await world.train("p0", "p1")
        again = world.authority.refound(["p0"])  # which changes nothing more
        assert world.authority.generation().settings == {"method.name": "push-sum", "weights": "1"}
        await deliver(world.authority, again, world.addresses["p0"])
        await until(lambda: all(world.runs(name, 2) for name in world.names))
        await world.check(founded=1)

    run(story())


@pytest.mark.parametrize(
    "settings",
    [
        {"runtime.tunnels": "0"}, {"task.function": "os:system"}, {"task.weights": "/etc/passwd"}, {"method.x": 7},
        ["method"],
        {"method.clusters": "1" * 500}, {"weights": "9"}, {"weights": "0"}, {f"method.a{at}": "1" for at in range(99)},
        {"method.name": "a\nb"}, {"data.source": "x"}, {"method..name": "x"}, {"seed": "1"},
    ],
    ids=lambda settings: str(settings)[:30],
)  # fmt: skip
def test_settings_in_a_record_are_no_more_than_they_may_be(settings):
    with pytest.raises(CertificateError, match="settings"):
        Generation.of({"generation": 1, "founders": ["ann"], "settings": settings})


def test_the_command_finds_mistakes_before_it_signs(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann"])
    authority.issue("ann")

    def refound(*words):
        return CliRunner().invoke(app, ["refound", str(authority.folder), "--to", "127.0.0.1:9", *words]).output

    assert "method.cluster" in refound("--set", "method.cluster=8")
    assert "only method, training, sparsity and task.model" in refound("--set", "runtime.view=3")
    assert "--weights old: must be present or new" in refound("--weights", "old")
    assert authority.generation().number == 0
    assert "method.clusters = 8" in refound("--set", "method.clusters=8")
    assert authority.generation() == Generation(1, ("ann",), {"method.clusters": "8"})
    assert "strength = 0.1" in refound("--set", "method.strength=0.1", "--weights", "new")
    settings = {"method.clusters": "8", "method.strength": "0.1", "weights": "2"}
    assert authority.generation() == Generation(2, ("ann",), settings)


def test_present_weights_of_another_model_are_not_taken_for_this_one(tmp_path):
    from pushcen.learning import Learner, Task
    from pushcen.methods import PushCen
    from pushcen.runtime.changes import carry_over

    def learner(width):
        task = Task(torch.nn.Linear(2, width), (torch.zeros(8, 2), torch.zeros(8, dtype=torch.long)))
        return Learner(task, PushCen(clusters=4).update())

    world = World(tmp_path, names=("p0",))
    old, new = learner(2), learner(3)
    with pytest.raises(OptionError, match=r"weight is \[2, 2\] here; the authority has to say --weights new"):
        carry_over(new, old.save().tensors, world.setup("p0"))
    same = learner(2)
    carry_over(same, old.save().tensors, world.setup("p0"))
    assert torch.equal(same.model.weight, old.model.weight)


@pytest.mark.slow
def test_processes_change_their_method_half_of_them_down_at_that_moment(tmp_path):
    quick = {"runtime.gossip_every": 0.5, "runtime.hello_every": 1.0, "runtime.retry_last": 2.0, "runtime.pause": 0.1}
    network = LocalNetwork(tmp_path, TINY, 4, None, {**quick, "method.clusters": 4})

    def runs(name, clusters):
        saved = read_state(network.state(name)) if (network.state(name) / "ledger.db").exists() else {}
        return saved.get("about", {}).get("method.clusters") == clusters and network.events(name) > 3

    def told():
        return "\n".join(network.last_words(name) for name in network.names)

    network.start()
    try:
        wait_until(lambda: all(runs(name, "4") for name in network.names), told)
        network.kill("p2")
        network.kill("p3")
        words = [
            "refound",
            str(network.authority.folder),
            "--to",
            network.addresses["p0"],
            "--set",
            "method.clusters=16",
        ]
        assert CliRunner().invoke(app, words).exit_code == 0
        wait_until(lambda: all(runs(name, "16") for name in ("p0", "p1")), told)
        network.start("p2", "p3")
        wait_until(lambda: all(runs(name, "16") for name in network.names), told)
        before = {name: network.events(name) for name in network.names}
        wait_until(lambda: all(network.events(name) > before[name] + 3 for name in network.names), told)
    finally:
        network.stop(timeout=LIMIT)
    found = network.audit()
    assert found.violations == []
    assert found.held + found.on_links == found.founded == 4 * UNIT
