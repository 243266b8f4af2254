"""Whether two runs are the same run: one answer, wherever it is asked."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import pytest

from pushcen.analysis import group
from pushcen.config import Config, load_config
from pushcen.errors import PushcenError, RunError
from pushcen.folder import Folder, read_config
from pushcen.runs import Run, RunStore, folder_for, identity_in, launch
from pushcen.simulation import simulate_world
from pushcen.simulation.options import differences
from tests.runs.made import make_run
from tests.simulation import worlds

INTERRUPTED = Path(__file__).parent / "golden" / "interrupted"  # written by version 0.1.0 before there was an identity
MINE = """
from dataclasses import dataclass
from pushcen.methods import AsyncDFedAvg
@dataclass(frozen=True)
class Mine(AsyncDFedAvg):
    name = "mine"
    {options}
"""


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(INTERRUPTED, tmp_path / "runs" / "interrupted")


def resumed(folder, config):
    """Go on from the checkpoint alone, as if there were no config beside it."""
    return simulate_world(config, worlds.task, folder, resume=True)


def answers(folder, changed):
    """Ask everybody whether the run with a change is the run in the folder."""
    config = load_config(read_config(folder), changed)
    other = folder.parent / "changed"
    Folder(other).write_config(config.plain())
    found = {
        "identity": config.identity() == Run.open(folder).identity(),
        "groups": len(group([Run.open(folder), Run.open(other)])) == 1,
        "names": folder_for(folder.parent.parent, "runs", {"interrupted": config}) == folder.parent,
    }
    shutil.rmtree(other)
    found["plans"] = RunStore(folder.parent).find(config) is not None
    for name, go_on in {"launch": lambda c, f: launch(c, f), "resume": lambda c, f: resumed(f, c)}.items():
        copy = shutil.copytree(folder, folder.parent.parent / name)
        try:
            go_on(config, copy)
            said = ""
        except RunError as error:
            said = str(error)
        found[name] = next(iter(changed)) not in said
    return found


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"runtime.patience": 1.0}, True),
        ({"executor.workers": 2, "checkpoint.seconds": 5}, True),
        ({"horizon": 3}, True),
        ({"horizon": 2.0}, False),
        ({"method.strength": 0.1}, False),
        ({"meters.names": ["mass"]}, False),
        ({"task.function": "tests.simulation.worlds:norm_task"}, False),
    ],
)
def test_everybody_gives_the_same_answer(folder, changed, same):
    found = answers(folder, changed)
    assert found == dict.fromkeys(found, same)


def test_another_seed_is_another_run_of_the_same_group(folder):
    found = answers(folder, {"seed": 4})
    assert found == dict.fromkeys(found, False) | {"groups": True}


def test_a_checkpoint_of_an_earlier_version_goes_on_to_its_end(folder):
    rows = Run.open(folder).rows
    done = launch(load_config(read_config(folder)), folder)
    assert done.finished
    assert [row["time"] for row in done.rows] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert done.rows[:2] == rows
    whole = simulate_world(load_config(done.config), worlds.task)
    assert done.summary["final"]["accuracy"] == pytest.approx(whole["final"]["accuracy"], abs=0.05)
    assert done.summary["steps"] == whole["steps"]


def test_a_missing_key_is_the_options_default_and_an_unknown_one_makes_another_run(folder):
    values = read_config(folder)
    config = load_config(values)
    del values["training"]["momentum"], values["method"]["feedback"], values["network"], values["checkpoint"]
    assert Config.identity_of(values) == config.identity()
    values["method"]["feedback"] = False
    assert Config.identity_of(values) != config.identity()
    assert Config.identity_of(read_config(folder) | {"gone": 1}) != config.identity()


def test_a_missing_key_is_what_was_done_before_there_was_that_option_where_the_default_is_not():
    config = load_config("digits", {"method.name": "pushcen-lean"})
    values = config.plain()
    assert values["method"].pop("spread") != 0
    assert differences(Config.identity_of(values), config.identity()) == ["method.spread"]
    same = load_config("digits", {"method.name": "pushcen-lean", "method.spread": 0})
    assert Config.identity_of(values) == same.identity()


def test_where_a_function_is_the_task_the_data_does_not_count(folder):
    values = read_config(folder)
    assert Config.identity_of(values | {"data": {"alpha": 0.9}}) == Config.identity_of(values)
    values["task"] = {"model": "cnn"}
    assert Config.identity_of(values | {"data": {"alpha": 0.9}}) != Config.identity_of(values)


def test_only_what_says_so_where_it_is_declared_does_not_count():
    marked = [field.name for field in dataclasses.fields(Config) if "counts" in field.metadata]
    assert marked == ["executor", "checkpoint", "record", "runtime"]
    config = load_config("digits")
    assert set(config.identity()) == {
        key for key in map(str, Config.identity_of({}, real=True)) if not key.startswith("runtime.") and key != "world"
    }


@pytest.mark.parametrize("name", ["bomb:Mine", "no_such_package:Mine", "unheard-of", 3])
def test_reading_a_folder_imports_nobodys_method(folder, tmp_path, monkeypatch, name):
    (tmp_path / "bomb.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Folder(folder).write_config(read_config(folder) | {"method": {"name": name, "own": [1, {"a": [2]}]}})
    assert Run.open(folder).identity()["method.own"]
    assert len(group([Run.open(folder), Run.open(INTERRUPTED)])) == 2
    assert RunStore(folder.parent).find(load_config(read_config(INTERRUPTED))) is None
    assert "bomb" not in sys.modules


def test_a_method_of_ones_own_may_get_an_option_and_is_known_by_its_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("identity_mine.py").write_text(MINE.format(options="extra: int = 3"))
    config = load_config({"method": "identity_mine:Mine"})
    values = config.plain()
    assert config.identity()["method.name"] == "identity_mine:Mine"
    del values["method"]["extra"]  # as it was written before there was the option
    assert Config.identity_of(values) == config.identity()
    assert Config.identity_of(values | {"method": {"name": "another:Mine"}}) != config.identity()


def test_an_old_checkpoint_knows_a_method_of_ones_own_by_its_name_alone(tmp_path, monkeypatch):
    class Mine(type(worlds.world().method)):
        name = "mine"

    class Other(Mine):
        name = "other"

    mine, other = (kind(clusters=4, receivers=3) for kind in (Mine, Other))
    worlds.run(tmp_path, method=mine, horizon=1.0)
    [state] = tmp_path.glob("checkpoint/*/state.json")
    saved = json.loads(state.read_text())
    with pytest.raises(RunError, match=r"another world: method\.name differ"):
        worlds.run(tmp_path, method=other, horizon=1.0, resume=True)
    world = dataclasses.asdict(worlds.world(method=mine, horizon=1.0))
    saved["world"] = world | {"method": world["method"] | {"name": "mine"}}
    state.write_text(json.dumps(saved))
    assert worlds.run(tmp_path, method=mine, horizon=1.0, resume=True)["status"] == "finished"
    saved["world"] = ["not", "a", "world"]
    state.write_text(json.dumps(saved))
    with pytest.raises(RunError, match="cannot be read"):
        worlds.run(tmp_path, method=mine, horizon=1.0, resume=True)


def real(folder, mass, **runtime):
    """A run as `pushcen up` leaves it."""
    make_run(folder)
    Folder(folder).write_config(read_config(folder) | {"runtime": runtime})
    Folder(folder).write_summary(json.loads((folder / "summary.json").read_text()) | mass)
    return folder


def test_real_networks_differ_by_how_their_peers_behave_and_from_simulated_ones(tmp_path):
    here = {"world": "real"}
    folders = [real(tmp_path / "a", here, view=5), real(tmp_path / "b", here, view=9), make_run(tmp_path / "c")]
    assert identity_in(folders[0]) == Run.open(folders[0]).identity() != identity_in(folders[2])
    found = group([Run.open(folder) for folder in folders])
    assert [len(one.runs) for one in found] == [1, 1, 1]
    assert len({one.label for one in found}) == 3


def test_mass_in_the_folder_of_an_earlier_real_network_has_todays_names(tmp_path):
    mass = {"founded": 4.0, "held": 3.0, "on_links": 0.5, "lost": 0.5, "exact": True}
    folder = real(tmp_path / "a", {"meters": {"mass": mass}}, view=5)
    run = Run.open(folder)
    found = [run.number(f"meters.mass.mass_{name}") for name in ("held", "waiting", "under_way", "destroyed")]
    assert found == [0.75, 0.0, 0.125, 0.125]
    assert run.summary["meters"]["mass"]["exact"]
    assert run.identity()["world"] == "real"


def test_what_is_no_run_is_not_planned_with(tmp_path):
    for name, text in {"a": "= 3", "b": "[" * 10_000, "c": "clients = 'many'"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(text)
    assert RunStore(tmp_path).find(load_config("digits")) is None
    with pytest.raises(PushcenError, match=r"b.config\.toml"):
        Run.open(tmp_path / "b")
