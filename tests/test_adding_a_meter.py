"""The meter in docs/adding-a-meter.md is a real one: it measures what it says, on any executor, after a stop too."""

import json
import pickle
import re
import sys
from pathlib import Path

import pytest

from pushcen.config import Config
from pushcen.errors import OptionError
from pushcen.learning import State
from pushcen.simulation import MeterOptions, Quiet, checkpoint, jobs
from pushcen.simulation.meters import consensus, gradient, mass_shift
from pushcen.simulation.reference import Add, CopyFolded, CopyRow
from tests.simulation.worlds import plain, run

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-meter.md"
NAME = "weights:WeightNorm"


@pytest.fixture(autouse=True)
def page(tmp_path, monkeypatch):
    """Put the page's file into the current folder, as a user does."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) < 40
    (tmp_path / "weights.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "weights", raising=False)


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_it_measures_the_weights_of_that_moment(tmp_path):
    summary = run(tmp_path / "run", meters=MeterOptions((NAME, "mass")), horizon=2.0)
    saved = checkpoint.Saved(checkpoint.find(tmp_path / "run"))
    states = [saved.learner(client).tensors for client in range(8)]
    norms = [sum(t.square().sum() for n, t in s.items() if n.startswith("model.")).sqrt() for s in states]
    last = rows(tmp_path / "run")[-1]
    assert last["weight_norm"] == pytest.approx(float(sum(norms) / 8), rel=1e-5)
    assert summary["meters"]["weight-norm"]["largest"] >= last["weight_norm"]
    assert list(summary["meters"]) == ["mass", "weight-norm"]


def test_it_changes_nothing_and_is_the_same_on_any_number_of_threads():
    without = run(meters=MeterOptions(()), horizon=2.0)
    one, two = (run(meters=MeterOptions((NAME,)), horizon=2.0, workers=workers) for workers in (1, 2))
    assert plain(one) == plain(two)
    assert one["final"]["accuracy"] == without["final"]["accuracy"]
    assert one["final"]["loss"] == without["final"]["loss"]


def test_it_goes_on_after_an_interruption(tmp_path):
    class Stop(Quiet):
        def evaluated(self, row):
            if row["time"] == 2.0:
                raise KeyboardInterrupt

    from pushcen.simulation import CheckpointOptions

    options = {"meters": MeterOptions((NAME,)), "horizon": 4.0, "checkpoint": CheckpointOptions(seconds=0.001)}
    whole = run(tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", observer=Stop(), **options)
    assert plain(run(tmp_path / "cut", resume=True, **options)) == plain(whole)
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")


def test_it_is_chosen_in_the_config():
    config = Config.of({"meters": {"names": ["mass", NAME]}})
    assert config.meters.names == ("mass", NAME)
    assert config.identity()["meters.names"] == ("mass", NAME)


def test_names_that_are_no_meters_are_refused(tmp_path):
    (tmp_path / "odd.py").write_text(
        "from pushcen.simulation import Meter\nfrom weights import WeightNorm as Again\n"
        "class Nameless(Meter): pass\nclass Mass(Meter): name = 'mass'\nclass Twin(Meter): name = 'weight-norm'\n"
    )
    for names, text in {
        ("weights:Weight",): "module weights has no Weight",
        ("weights:Norm",): "is no subclass of pushcen.simulation.Meter",
        ("nowhere:Meter",): "nowhere",
        ("odd:Nameless",): "the class must have a `name`",
        ("odd:Mass",): "is called 'mass', as another meter is",
        (NAME, "odd:Twin"): "is called 'weight-norm', as another meter is",
        ("traffik",): "did you mean traffic",
    }.items():
        with pytest.raises(OptionError, match=re.escape(text)):
            MeterOptions(names)


def test_a_figure_that_is_there_already_is_refused(tmp_path):
    (tmp_path / "greedy.py").write_text(
        "from pushcen.simulation import Meter, Reading\n"
        "class Greedy(Meter):\n    name = 'greedy'\n    def read(self, nodes, reference):\n"
        "        return Reading((), lambda _: {'accuracy': 1.0})\n"
    )
    with pytest.raises(OptionError, match=r"meters\.names: accuracy: must be a figure of one meter only"):
        run(meters=MeterOptions(("greedy:Greedy",)), horizon=1.0)


def test_every_job_survives_the_way_to_a_cluster():
    made = [jobs.Build(), jobs.Fold(3, 1), jobs.Take(), jobs.PutBack(), jobs.Step(1, (2,), (0,), False, True, False)]
    made += [jobs.Encode(), jobs.Evaluate(True, True), jobs.Save(), jobs.Crash(), CopyRow(), CopyFolded()]
    made += [Add(((0.5, "row"),), first=True), consensus.Distance(), gradient.Gradient(), gradient.Apart()]
    made += [gradient.Norm2(), mass_shift.Difference()]
    assert [pickle.loads(pickle.dumps(job)) for job in made] == made
    assert pickle.loads(pickle.dumps(jobs.Restore(State({}, {"a": 1})))).state == State({}, {"a": 1})
