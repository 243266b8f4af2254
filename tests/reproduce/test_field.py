"""The table of the field, from real small runs: both accuracies, what waiting took, and the best first."""

from pathlib import Path

import pytest

from pushcen.reproduce.experiment import read
from pushcen.reproduce.plan import jobs_of, plan
from pushcen.reproduce.results import gather
from pushcen.reproduce.tables import table
from pushcen.runs import RunStore, one_by_one

SMALL = {"clients": 5, "horizon": 2.0, "evaluation.every": 1.0, "neighbours.degree": 2}
ROWS = ("pushcen", "d-psgd", "independent")


def test_both_accuracies_are_those_of_the_runs_and_the_best_comes_first(tmp_path):
    experiment = read("field").only(ROWS, (0.4,))
    runs = plan(experiment, "digits", "field", 2, SMALL)
    assert all(report.done for report in one_by_one(jobs_of(runs, RunStore(tmp_path))))
    store = RunStore(tmp_path)
    shown = table(experiment, "digits", "field", gather(runs, store))
    titles = [column.title for column in shown.columns]
    rows = {row[0]: dict(zip(titles, row, strict=True)) for row in shown.rows}
    for name in ROWS:
        own = [store.find(run.config).last for run in runs if run.row.name == name]
        row = rows[experiment.rows[name].label]
        for title, figure in (("accuracy %", "accuracy"), ("mean of all models %", "reference_own_accuracy")):
            assert row[title] == pytest.approx(50 * sum(last[figure] for last in own))
        assert row["sent in all"] == pytest.approx(sum(last["bytes_sent"] for last in own) / 2)
        waited = [last["waiting_share"] for last in own if "waiting_share" in last]
        assert row["time spent waiting %"] == (pytest.approx(50 * sum(waited)) if name == "d-psgd" else None)
    assert [row[2] for row in shown.rows] == sorted((row[2] for row in shown.rows), reverse=True)
    assert rows["PushCen"]["to PushCen"] is None
    gap = rows["Independent"]["accuracy %"] - rows["PushCen"]["accuracy %"]
    assert rows["Independent"]["to PushCen"] == pytest.approx(gap)
    assert titles[-1] == "until 85 %"


def test_options_that_were_tried_stand_in_the_order_of_their_grid(tmp_path):
    experiment = read("tuning")
    shown = table(experiment, "cifar10", "tuning", gather(plan(experiment, "cifar10", "tuning"), RunStore(tmp_path)))
    assert [row[0] for row in shown.rows] == [row.label for row in experiment.rows.values()]


def test_every_rivals_option_is_the_one_that_the_committed_runs_choose():
    """The best own accuracy; of those within half a point of it, the best mean of all models."""
    runs = plan(read("tuning"), "cifar10", "tuning")
    tried = {}
    for point in gather(runs, RunStore(Path(__file__).parents[2] / "results" / "cifar10-tuning")):
        tried.setdefault(point.row.set["method.name"], []).append(point)
    shown = read("field").rows
    assert set(shown) - set(tried) == {"pushcen", "pushcen-lean", "async-dfedavg", "ad-psgd", "independent"}
    for method, points in tried.items():
        best = max(point.mean("accuracy") for point in points)
        near = [point for point in points if point.mean("accuracy") >= best - 0.5]
        chosen = max(near, key=lambda point: point.mean("reference_own_accuracy"))
        used = {key: value for key, value in shown[method].set.items() if key != "method.name"}
        assert used.items() <= chosen.row.set.items(), method
