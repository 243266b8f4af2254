"""Rows and summaries by any metric: its own name and direction, pooled over clients, undefined ones left out."""

import json
import math
import pickle

import pytest
import torch
from torch import nn

from pushcen.errors import TaskError
from pushcen.learning import Learner, Task, pooled
from pushcen.simulation import EvaluationOptions, ExecutorOptions, ParticipationOptions
from tests.simulation.test_determinism import Stops, files
from tests.simulation.worlds import run
from tests.simulation.worlds import task as classes

SOME_LATE = ParticipationOptions(delayed=0.25, earliest=0.5, latest=1.0)


class Spread:
    """The standard deviation of errors, by torchmetrics' interface."""

    higher_is_better = False

    def __init__(self):
        self.errors = []

    def update(self, outputs, targets):
        self.errors.append(outputs[:, 0] - targets)

    def compute(self):
        return torch.cat(self.errors).std()


def numbers(client, clients):
    """A regression, without a word about loss or metric."""
    draw = torch.Generator().manual_seed(client)
    inputs = torch.randn(96, 6, generator=draw)
    targets = inputs @ torch.linspace(-1, 1, 6) + client / 4 + 0.1 * torch.randn(96, generator=draw)
    return Task(nn.Linear(6, 1), (inputs[:64], targets[:64]), (inputs[64:], targets[64:]))


def numbers_by_many(client, clients):
    made = numbers(client, clients)
    made.metric = ["rmse", "r2", "mae", f"{__name__}:Spread", "loss"]
    return made


def labelled(client, clients):
    """Two classes, of which client 2 has only one to test."""
    made = classes(client, clients)
    made.metric = ["auroc", "accuracy"]
    if client == 2:
        made.test = made.test[0], torch.zeros_like(made.test[1])
    return made


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regression")
    evaluation = EvaluationOptions(per_client=True, reference=True, every=0.5)
    summary = run(folder, numbers, horizon=4.0, participation=SOME_LATE, evaluation=evaluation)
    return summary, [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_regression_is_measured_by_rmse_and_says_so(regression):
    summary, rows = regression
    assert summary["metric"] == {"name": "rmse", "higher_is_better": False, "percent": False, "pooled": True}
    assert rows[0]["metric"] == summary["metric"]
    assert not any("accuracy" in key for row in [*rows, summary] for key in row)
    assert rows[-1]["rmse"] < rows[0]["rmse"]


def test_the_best_is_the_lowest_and_the_worst_tenth_the_highest(regression):
    summary, rows = regression
    best = min(rows, key=lambda row: row["rmse"])
    assert summary["best_rmse"] == {"time": best["time"], "rmse": best["rmse"], "rmse_sd": best["rmse_sd"]}
    assert rows[-1]["rmse_worst_tenth"] == max(rows[-1]["clients"].values())
    late = [client for client in rows[-1]["clients"] if client not in rows[0]["clients"]]
    bests = [min(row["clients"][client] for row in rows if client in row["clients"]) for client in late]
    assert len(late) == 2
    assert rows[-1]["delayed_best"] == pytest.approx(sum(bests) / 2)


def test_what_is_no_mean_over_samples_is_also_taken_over_all_outputs_together(regression):
    _, rows = regression
    values = rows[-1]["clients"].values()  # all have 32 samples to test
    together = math.sqrt(sum(value**2 for value in values) / len(values))
    assert rows[-1]["rmse_pooled"] == pytest.approx(together)
    assert rows[-1]["rmse"] == pytest.approx(sum(values) / len(values))
    assert rows[-1]["reference_own_rmse_pooled"] > 0


def test_clients_where_a_metric_is_undefined_are_left_out_and_counted():
    final = run(function=labelled, horizon=1.0, evaluation=EvaluationOptions(global_test=True))["final"]
    assert final["auroc_left_out"] == 1
    assert 0.5 < final["auroc"] <= 1
    assert 0.5 < final["auroc_pooled"] <= 1
    assert "accuracy_left_out" not in final
    assert {"global_auroc", "global_accuracy_sd"} <= final.keys()
    assert "global_auroc_pooled" not in final  # the same samples for all
    assert [other["name"] for other in final["metrics"]] == ["accuracy"]


def test_the_other_metrics_of_a_task_have_their_figures_too():
    final = run(function=numbers_by_many, horizon=1.0)["final"]
    for name in ("rmse", "r2", "mae", "Spread", "loss"):
        assert math.isfinite(final[name])
        assert math.isfinite(final[f"{name}_worst_tenth"])
        assert (f"{name}_pooled" in final) == (name in ("rmse", "r2", "Spread"))
    alone = run(function=numbers, horizon=1.0)["final"]
    assert {key: final[key] for key in alone if key != "metric"} == {k: v for k, v in alone.items() if k != "metric"}


def test_any_number_of_threads_and_any_interruption_give_the_same_bytes(tmp_path):
    for name, workers in (("one", 1), ("four", 4)):
        run(tmp_path / name, numbers_by_many, horizon=3.0, workers=workers, participation=SOME_LATE)
    assert files(tmp_path / "one") == files(tmp_path / "four")
    options = {"horizon": 3.0, "participation": SOME_LATE}
    assert run(tmp_path / "broken", numbers_by_many, observer=Stops(2), **options)["status"] == "interrupted"
    run(tmp_path / "broken", numbers_by_many, resume=True, **options)
    assert files(tmp_path / "broken") == files(tmp_path / "one")


def test_what_pools_a_score_survives_the_way_between_processes():
    scores = [Learner(numbers_by_many(client, 4)).evaluate() for client in range(4)]
    there = pickle.loads(pickle.dumps(scores))
    for at in (0, 1, 3):  # RMSE, R2, and that of our own
        assert pooled([one.tallies[at] for one in scores]) == pooled([one.tallies[at] for one in there])


@pytest.mark.slow
def test_a_ray_cluster_pools_to_the_same_bytes(tmp_path):
    pytest.importorskip("ray")
    options = {"function": numbers_by_many, "horizon": 1.0, "clients": 4}
    run(tmp_path / "threads", **options)
    run(tmp_path / "ray", executor=ExecutorOptions("ray", workers=2), **options)
    assert files(tmp_path / "ray") == files(tmp_path / "threads")


def test_clients_that_are_measured_by_different_metrics_are_refused():
    def mixed(client, clients):
        return labelled(client, clients) if client == 3 else classes(client, clients)

    with pytest.raises(TaskError, match="client 3 is measured by auroc, accuracy, client 0 by accuracy"):
        run(function=mixed, horizon=1.0)


def test_a_metric_that_cannot_be_ends_the_run_before_anything_is_trained(tmp_path):
    def wrong(client, clients):
        made = numbers(client, clients)
        made.metric = "auroc" if client == 5 else "rmse"
        return made

    with pytest.raises(TaskError, match=r"client 5, evaluation: .*a target is .*: auroc needs a score for each class"):
        run(tmp_path, wrong, horizon=1.0)
    assert not (tmp_path / "checkpoint").exists()


def test_a_run_that_goes_on_with_another_metric_starts_its_best_anew(tmp_path):
    def by(metric):
        def made(client, clients):
            one = numbers(client, clients)
            one.metric = metric
            return one

        return made

    options = {"horizon": 4.0, "participation": SOME_LATE}
    assert run(tmp_path, by("rmse"), observer=Stops(2), **options)["status"] == "interrupted"
    summary = run(tmp_path, by("r2"), resume=True, **options)
    assert summary["best_r2"]["r2"] >= summary["final"]["r2"]
    assert summary["delayed"]["best"] < 1
