"""`pushcen audit` reassures only if everything was seen and adds up, and says what cannot be and what was not there."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.methods import AsyncDFedAvg
from pushcen.protocol import UNIT
from pushcen.runtime.audit import examine
from pushcen.runtime.state_folder import StateFolder

from .world import World, run, until

NAMES = ("p0", "p1", "p2")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The state folders of three founders that have trained together, and stopped."""
    folder = tmp_path_factory.mktemp("network")

    async def story():
        world = World(folder, names=NAMES, pause=0.02)
        await world.start(*NAMES)
        await until(lambda: all(len(world.node(name).peer.credited) == 2 for name in NAMES))
        await world.stop()

    run(story())
    return folder


@pytest.fixture
def ledgers(network, tmp_path):
    folders = [tmp_path / name for name in NAMES]
    for folder in folders:
        shutil.copytree(network / folder.name, folder)
    return folders


def audit(*folders):
    done = CliRunner().invoke(app, ["audit", *map(str, folders)])
    return done.exit_code, done.output


def forge(folder, change, drop=()):
    """Change the books of a stopped peer."""
    store = StateFolder(folder)
    state = store.load()["peer"]
    change(state)
    store.commit({"peer": state})
    for key in drop:
        store._db.execute("DELETE FROM state WHERE key = ?", (key,))
    store.close()


def test_all_ledgers_that_add_up_are_sound(ledgers):
    code, said = audit(*ledgers)
    assert (code, "every quantum is somewhere" in said) == (0, True), said
    assert audit(*ledgers, ledgers[0])[0] == 0  # the same folder twice is that folder
    done = CliRunner().invoke(app, ["audit", "--json", *map(str, ledgers)])
    assert json.loads(done.output)["wrong"] == json.loads(done.output)["unseen"] == []


@pytest.mark.parametrize("missing", [["p0"], ["p1", "p2"]])
def test_a_founder_whose_ledger_is_not_here_is_named(ledgers, missing):
    code, said = audit(*(folder for folder in ledgers if folder.name not in missing))
    assert code == 1
    assert all(f"{name} is a founder, and the ledger of {name}/1 is not here" in said for name in missing)
    assert "every quantum" not in said
    assert "CANNOT BE" not in said


def test_a_founder_that_nobody_has_met_is_missed_too(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        await world.start("p0", join=[])
        await until(lambda: world.events("p0") > 1)
        await world.stop()
        code, said = audit(world.state("p0"))
        assert (code, "p1 is a founder" in said) == (1, True)

    run(story())


def no_mass(state):
    state["founded"] = state["held"] = 0
    state["sent"], state["credited"], state["unsettled"] = {}, {}, []


def made_up(state):
    state["credited"]["eve/1"] = [205 * UNIT, 1]
    state["held"] += 205 * UNIT
    state["forgotten"] = {"eve/1": 0}


def unseen_maker(state):
    state["credited"]["eve/1"] = [UNIT, 1]
    state["held"] += UNIT


def negative(state):
    state["held"] -= 5 * UNIT
    state["sent"]["p1/1"] += 5 * UNIT


CHANGES = {
    "p0/1 says it was founded with 0.000000000, and the network gave it 1.000000000": no_mass,
    "books add up to": lambda state: state.update(held=state["held"] + 1),
    "says it was founded with 2.000000000": lambda s: s.update(held=s["held"] + UNIT, founded=2 * UNIT),
    "who was forgotten gave out 205.000000000 more than there can ever have been": made_up,
    "who is not here gave out 1.000000000 more than there can ever have been": unseen_maker,
    "p0/1 has a negative amount in its books": negative,
    "p0/1 has credited": lambda s: s["credited"].update({"p1/1": [9 * UNIT, 1]}),
}


@pytest.mark.parametrize("told", CHANGES)
def test_what_cannot_be_is_told(ledgers, told):
    forge(ledgers[0], CHANGES[told])
    code, said = audit(*ledgers)
    assert code == 1
    assert any(told in line and line.startswith("CANNOT BE") for line in said.splitlines()), said
    assert "every quantum" not in said


def test_mass_from_an_epoch_whose_links_were_dropped_is_not_made_up_either(ledgers, tmp_path):
    """p0 has 205 units of eve/1, whose link it dropped when eve came as eve/9; eve's own books know nothing of them."""

    def made_up(state):
        state["held"] += 205 * UNIT
        state["over"] = {"eve": [-205 * UNIT, 0]}
        state["past"] = {"eve": 9}

    forge(ledgers[0], made_up)
    eve = tmp_path / "eve"
    shutil.copytree(ledgers[1], eve)
    forge(eve, lambda state: (no_mass(state), state.update(peer="eve/1")))
    code, said = audit(*ledgers, eve)
    assert code == 1
    assert "CANNOT BE    eve and p0 have credited 205.000000000 more of each other than they sent" in said
    assert "every quantum" not in said


def test_what_went_through_who_was_forgotten_is_not_called_made_up_while_a_ledger_is_missing(ledgers):
    def through(state):  # p2 gave half of its unit to x, which gave it to p0, and was forgotten
        state["credited"]["x/1"] = [UNIT // 2, 1]
        state["held"] += UNIT // 2
        state["forgotten"] = {"x/1": 0}

    forge(ledgers[0], through)
    code, said = audit(*ledgers[:2])
    assert (code, "CANNOT BE" in said, "p2 is a founder" in said) == (1, False, True), said
    assert "who was forgotten gave out 0.500000000" in audit(*ledgers)[1]


def test_copies_and_other_networks_are_told(ledgers, tmp_path, network):
    shutil.copytree(ledgers[0], tmp_path / "copy")
    code, said = audit(*ledgers, tmp_path / "copy")
    assert (code, "p0/1 has more than one ledger here" in said) == (1, True)
    store = StateFolder(ledgers[1])
    store.commit({"network": "another"})
    store.close()
    assert "different networks" in audit(*ledgers)[1]


def test_ledgers_from_before_founders_were_noted_are_known_by_one_that_notes_them(ledgers):
    for folder in ledgers[:2]:
        forge(folder, lambda _: None, drop=["founders"])
    assert audit(*ledgers)[0] == 0
    code, said = audit(*ledgers[:2])
    assert (code, "who the founders were" in said) == (1, True)


def test_a_peer_that_goes_on_notes_the_founders_in_an_older_ledger(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0",))
        await world.start("p0")
        await until(lambda: world.events("p0") > 1)
        await world.stop()
        forge(world.state("p0"), lambda _: None, drop=["founders"])
        assert not examine([world.state("p0")]).sound
        await world.start("p0")
        await world.stop()
        assert examine([world.state("p0")]).sound

    run(story())


def test_a_method_without_mass_needs_none(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        await world.start("p0", "p1", method=AsyncDFedAvg())
        await until(lambda: all(world.events(name) > 2 for name in ("p0", "p1")))
        await world.stop()
        code, said = audit(world.state("p0"), world.state("p1"))
        assert code == 0, said

    run(story())
