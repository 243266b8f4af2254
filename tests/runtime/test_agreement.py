"""What must agree between peers is refused by name on both sides; what may differ is told; new options part nobody."""

import json

from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.learning import TrainingOptions
from pushcen.methods import PushCen
from pushcen.runtime import changes
from pushcen.runtime import peer as starting
from pushcen.runtime.fingerprint import read_varying
from pushcen.runtime.status import read_status

from .world import World, run, until


def of(world, name, neighbour):
    """What the status of a peer says of another."""
    listed = [one for one in read_status(world.state(name)).neighbours if one.name == neighbour]
    return listed[0] if listed else None


def test_what_must_agree_is_refused_with_the_key_and_both_values_on_both_sides(tmp_path):
    async def story():
        world = World(tmp_path, founders=("p0", "p2"))
        await world.start("p0", "p2", events=0)
        await world.start("p1", events=0, method=PushCen(clusters=8))

        def told(name, other, there, here):
            said = of(world, name, other)
            text = f"method.clusters = {there} there, {here} here"
            return said is not None and (said.state, said.why) == ("refuses", text)

        await until(lambda: told("p1", "p0", 4, 8))
        await until(lambda: told("p0", "p1", 8, 4))
        assert of(world, "p0", "p2").state == "answers"
        shown = CliRunner().invoke(app, ["status", str(world.state("p0"))])
        assert "p1 refuses it: method.clusters = 8 there, 4 here" in " ".join(shown.output.split())
        assert shown.exit_code == 1

    run(story())


def test_what_may_differ_is_shown_and_keeps_nobody_apart(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        await world.start("p0", "p1", events=0, method=PushCen(clusters=4, receivers=1))
        await world.stop("p1")
        await world.start("p1", events=0, training=TrainingOptions(epochs=3))
        text = "method.receivers = 10 there, 1 here; training.epochs = 3 there, 1 here"
        await until(lambda: (said := of(world, "p0", "p1")) and (said.state, said.differs) == ("answers", text))
        shown = json.loads(CliRunner().invoke(app, ["status", "--json", str(world.state("p0"))]).output)
        assert [one["differs"] for one in shown["neighbours"]] == [text]
        screen = CliRunner().invoke(app, ["status", str(world.state("p0"))])
        assert f"p1 differs: {text}" in " ".join(screen.output.split())
        assert screen.exit_code == 0

    run(story())


def test_an_option_that_only_a_newer_version_has_parts_nobody_while_it_is_at_its_default(tmp_path, monkeypatch):
    """p1 is of a version whose method has one option more, and goes on from a folder of the version before."""

    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.05)
        await world.start("p0", "p1")
        await until(lambda: all(world.events(name) > 1 for name in world.names))
        await world.stop("p1")
        describe, usual = starting.describe, starting.usual
        monkeypatch.setattr(starting, "describe", lambda *of: {**describe(*of), "method.later": "1"})
        for module in (starting, changes):
            monkeypatch.setattr(module, "usual", lambda *of: {**usual(*of), "method.later": "1"})
        await world.start("p1")
        before = world.node("p0").metrics.received.labels("news")._value.get()
        await until(lambda: world.node("p0").metrics.received.labels("news")._value.get() > before + 2)
        await until(lambda: any(member.name == "p1" for member in world.node("p0").members.online()))
        await world.check()

    run(story())


def test_what_a_stranger_says_that_varies_is_short_and_does_nothing_to_a_terminal():
    said = read_varying({f"key{at:03}": "\x1b[2J" for at in range(1000)} | {"k": "x" * 1000})
    assert len(said) == 64
    assert set(said.values()) == {"?[2J"}
