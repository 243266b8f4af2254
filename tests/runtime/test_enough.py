"""Enough is enough: when training ends, which weights are kept, going back to them, and taking them out."""

import json

import pytest
import torch
from safetensors.torch import load_file

from pushcen.errors import LedgerError, OptionError
from pushcen.measure import ACCURACY, Measure
from pushcen.runtime.kept import best_of, best_weights, roll_back, weights_of
from pushcen.runtime.local import LocalNetwork, free_ports
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.rows import NAME, older, rotate, rows_of, scores
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.setup import peer_config
from pushcen.runtime.state_folder import File, StateFolder, read_state
from pushcen.runtime.track import BEST, Checkpoints, Track

from .tasks import tiny
from .test_commands import pushcen
from .world import QUICK, World, run, until

RMSE = Measure("rmse", higher_is_better=False)


def noted(scores, options, measure=ACCURACY, every=1):
    track, at = Track(), 0
    for at, score in enumerate(scores, 1):
        track.note(score, at, measure, options.stop_at, now=100.0 + every * at)
    return track.enough(options, measure, at, now=100.0 + every * at)


@pytest.mark.parametrize(
    ("scores", "measure", "options", "told"),
    [
        ([0.5, 0.6], ACCURACY, {}, ""),
        (
            [0.5, 0.6, None, 0.6, 0.59],
            ACCURACY,
            {"stop_without_gain": 3},
            "accuracy 60.0 % was not bettered for 3 events",
        ),
        ([0.5, 0.6, None, 0.6], ACCURACY, {"stop_without_gain": 3}, ""),
        ([None, None, None, None], ACCURACY, {"stop_without_gain": 2}, ""),  # nothing is evaluated: nothing is known
        (
            [0.91, 0.89, 0.9, None, 0.92],
            ACCURACY,
            {"stop_at": 90},
            "accuracy has reached 90 at two evaluations in a row",
        ),
        ([0.91, 0.89, 0.9, None, 0.89], ACCURACY, {"stop_at": 90}, ""),
        ([0.3, 0.1, 0.1], RMSE, {"stop_at": 0.1}, "RMSE has reached 0.1"),
        ([0.3, 0.2, 0.25, 0.21], RMSE, {"stop_without_gain": 2}, "RMSE 0.2 was not bettered for 2 events"),
        ([0.5] * 60, ACCURACY, {"stop_after": 59}, "it has trained for 59 s"),
        ([0.5] * 60, ACCURACY, {"stop_after": 60}, ""),
        ([float("nan"), float("nan")], ACCURACY, {"stop_at": 0, "stop_without_gain": 1}, ""),
    ],
)
def test_training_ends_by_the_rules(scores, measure, options, told):
    why = noted(scores, RuntimeOptions(**options), measure)
    assert why.startswith(told)
    assert bool(why) == bool(told)


def test_options_that_cannot_be_are_refused(tmp_path):
    assert peer_config("digits", ["runtime.stop_at=90", "runtime.stop_after=2 h"]).runtime.stop_after == 7200
    assert peer_config("digits").runtime == RuntimeOptions()
    for wrong in ({"stop_after": -1.0}, {"stop_without_gain": 1.5}, {"stop_at": "high"}, {"keep_best": -1}):
        with pytest.raises(OptionError):
            RuntimeOptions(**wrong)
    with pytest.raises(OptionError, match=r"runtime\.stop_at = 0.9: must be in percent"):
        Checkpoints(tmp_path, ACCURACY, RuntimeOptions(stop_at=0.9), None)


@pytest.mark.parametrize(
    "plain", [{}, [], {"best": 1}, {**Track().plain(), "kept": [[1, 2]]}, {**Track().plain(), "best": "x"}]
)
def test_a_track_that_is_none_is_refused(plain):
    with pytest.raises(LedgerError, match="is damaged"):
        Track.of(plain)


def test_the_best_few_are_kept_in_order_whatever_the_direction(tmp_path):
    for measure, order in ((ACCURACY, [4, 2, 5]), (RMSE, [1, 3, 6])):
        folder = tmp_path / measure.name
        folder.mkdir()
        checkpoints = Checkpoints(folder, measure, RuntimeOptions(keep_best=3), None)
        for events, score in enumerate([0.1, 0.5, 0.2, 0.9, 0.4, 0.3], 1):
            (folder / "weights-1.safetensors").unlink(missing_ok=True)
            (folder / "weights-1.safetensors").write_bytes(b"%d" % events)
            checkpoints.note(score, events, File("weights-1.safetensors", 1, "x"), clock=lambda: 1.0)
            checkpoints.tidy()
        assert [one.events for one in checkpoints.track.kept] == order
        assert {path.name for path in folder.glob(BEST.format("*"))} == {BEST.format(events) for events in order}
        assert (folder / BEST.format(order[0])).read_bytes() == b"%d" % order[0]
        again = Checkpoints(
            folder, measure, RuntimeOptions(keep_best=1), json.loads(json.dumps(checkpoints.track.plain()))
        )
        assert again.track == checkpoints.track


def test_a_peer_that_has_trained_enough_goes_on_answering(tmp_path):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.02, evaluate_every=1, stop_without_gain=4)
        await world.start("p0", "p1")
        await until(lambda: all(world.node(name).seen.phase == "done" for name in world.names))
        for name in world.names:
            track = Track.of(read_state(tmp_path / name)["track"])
            assert world.events(name) - track.best_at >= 4
            assert track.kept[0].score == track.best
        await until(lambda: not world.node("p0").peer.unsettled)
        await world.check()

    run(story())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The state folders of two peers that have trained, and been stopped."""
    folder = tmp_path_factory.mktemp("trained")

    async def story():
        world = World(folder, ("p0", "p1"), pause=0.02, evaluate_every=1, keep_best=2)
        await world.start("p0", "p1", events=8)
        await until(lambda: all(world.node(name).seen.phase == "done" for name in world.names))
        await world.check()

    run(story())
    return folder


def test_rolling_back_changes_the_weights_and_nothing_else(trained):
    state = trained / "p0"
    before, [best, second] = read_state(state), best_of(state)
    wanted = best_weights(state, second)
    assert roll_back(state, second.events) == second
    after = read_state(state)
    assert {key: value for key, value in after.items() if key != "files"} == {
        key: value for key, value in before.items() if key != "files"
    }
    found = weights_of(state)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in found)
    assert roll_back(state).events == best.events

    async def goes_on():
        again = Reopened(trained)
        await again.start("p0", "p1", events=12)
        await until(lambda: min(again.events("p0"), again.events("p1")) >= 12)
        assert again.node("p0").peer.me == before["peer"]["peer"]
        assert again.node("p0").peer.boot == before["peer"]["boot"] + 1
        await again.check()

    run(goes_on())


class Reopened(World):
    """The same network once more."""

    def __init__(self, folder):
        self.folder, self.names, self.task = folder, ["p0", "p1"], tiny
        self.authority = Authority.open(folder / "authority")
        self.addresses = dict(zip(self.names, (f"127.0.0.1:{port}" for port in free_ports(2)), strict=True))
        self.settings, self.identity = {**QUICK, "pause": 0.02}, lambda name: Certified(self.certs(name))
        self.drivers, self.lives, self._stacks = {}, {}, {}


def test_rolling_back_needs_a_peer_that_is_stopped_and_weights_that_are_whole(trained, tmp_path):
    state = trained / "p1"
    held = StateFolder(state)
    with pytest.raises(LedgerError, match="another process runs a peer"):
        roll_back(state)
    held.close()
    with pytest.raises(OptionError, match="no weights were kept of then"):
        roll_back(state, 999)
    with pytest.raises(LedgerError, match="no state folder"):
        roll_back(tmp_path)
    assert not any(tmp_path.iterdir())
    path = state / best_of(state)[0].file.name
    whole = path.read_bytes()
    path.unlink()  # it may be the newest file, too, under another name
    path.write_bytes(whole[:-1] + b"x")
    before = read_state(state)
    with pytest.raises(LedgerError, match="not what was committed"):
        roll_back(state)
    assert read_state(state) == before
    path.write_bytes(whole)


def test_best_and_newest_are_taken_out_and_never_into_the_state_folder(trained, tmp_path, monkeypatch):
    state, kept = trained / "p1", best_of(trained / "p1")
    monkeypatch.chdir(tmp_path)
    done = pushcen("export", state)
    assert done.exit_code == 0, done.output
    assert load_file("p1.safetensors").keys() == weights_of(state).keys()
    best = pushcen("export", state, "--best", "--out", "best.safetensors")
    assert best.exit_code == 0, best.output
    assert f"after {kept[0].events} compute events" in best.output
    wanted = best_weights(state, kept[0])
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in load_file("best.safetensors").items())
    (tmp_path / "link").symlink_to(state)
    for out in (state / "model.safetensors", tmp_path / "link" / "x.safetensors", state / "in" / "x.safetensors"):
        refused = pushcen("export", state, "--out", out)
        assert refused.exit_code == 2
        assert "must not be in the state folder" in refused.stderr
    assert pushcen("export", tmp_path, "--best", "--client", 0).exit_code == 2


def test_measurements_are_rotated_and_none_is_missed(tmp_path):
    path = tmp_path / "p0" / NAME
    path.parent.mkdir()
    network = LocalNetwork.__new__(LocalNetwork)
    network.folder, network.names, network._read, network._rows = tmp_path, ["p0"], {}, {"p0": []}
    for number in range(100):
        rotate(path, most=1000)
        with path.open("a") as file:
            file.write(json.dumps({"events": number, "accuracy": 1 - number / 1000, "best": 1.0}) + "\n")
        if number % 7 == 0:
            network.rows("p0")
    assert [row["events"] for row in network.rows("p0")] == list(range(100))
    assert path.stat().st_size + older(path).stat().st_size < 3000
    assert [row["events"] for row in rows_of(path.parent)][-1] == 99
    assert (scores(path.parent)["score"], scores(path.parent)["best"]) == (0.901, 1.0)


def test_a_task_with_no_test_data_keeps_none_and_that_is_told(tmp_path):
    StateFolder(tmp_path).close()
    refused = pushcen("rollback", tmp_path)
    assert refused.exit_code == 2
    assert "has no best weights" in refused.stderr
