"""Commands by another metric than accuracy: progress, tables and files have its name."""

import io

import pytest
from prometheus_client import generate_latest
from rich.console import Console
from typer.testing import CliRunner

from pushcen.analysis.units import size
from pushcen.cli import app
from pushcen.cli.progress import RunProgress
from pushcen.measure import Measure, written
from pushcen.reproduce.experiment import Experiment, Row
from pushcen.reproduce.results import Point, accuracy_table, bytes_table
from pushcen.runs import Run
from pushcen.runtime.metrics import Metrics
from tests.analysis.test_metrics import by_metric

RMSE = Measure("rmse", higher_is_better=False, pooled=True)


def pushcen(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("runs")
    words = ["--task", "tests.runtime.tasks:numbers", "--clients", 3, "--horizon", 1, "--runs", where, "--name", "one"]
    done = pushcen("simulate", *words)
    assert done.exit_code == 0, done.output
    return where, done.output


def test_a_run_ends_with_a_table_and_a_figure_by_its_metric(folder):
    where, shown = folder
    assert "RMSE, lower is better: on each client's own test data" in shown
    assert "one: rmse.png, metrics.jsonl" in shown
    assert "accuracy" not in shown
    assert (where / "one" / "rmse.svg").is_file()
    assert Run.open(where / "one").measure == RMSE


def test_a_sweep_goes_by_the_metric_unless_another_figure_is_named(folder):
    words = ["--task", "tests.runtime.tasks:numbers", "--clients", 2, "--horizon", 0.5, "--runs", folder[0]]
    for more, expected in (([], '"RMSE, lower is better"'), (["--figure", "mae"], '"MAE, lower is better"')):
        assert pushcen("sweep", *words, "--over", "method.clusters=4,8", *more).exit_code == 0
        assert (folder[0] / "sweep-numbers" / "sweep.csv").read_text().startswith(f"point,seeds,{expected},")


def test_a_line_of_progress_has_the_metric_from_the_start():
    out = io.StringIO()
    progress = RunProgress("a run", Console(file=out, width=200))
    progress._line = -1e9
    at = {"time": 1.0, "events": 3, "bytes_sent": 100}
    progress.started({"horizon": 2.0, **written([RMSE])})
    progress.progress(at)
    progress._line = -1e9
    progress.evaluated({**at, "rmse": 0.12345, **written([RMSE])})
    first, second = out.getvalue().splitlines()
    assert "RMSE -  100 B" in first
    assert "RMSE 0.1235  100 B" in second


def test_prometheus_has_accuracy_only_where_it_is_measured():
    by_accuracy, by_rmse = Metrics("a"), Metrics("b")
    by_accuracy.score({"accuracy": 0.5, "f1": 0.25})
    by_rmse.score({"rmse": 2.0})
    by_rmse.score({"rmse": 1.5})
    assert b"pushcen_accuracy 0.5" in generate_latest(by_accuracy.registry)
    assert b'pushcen_metric{name="f1"} 0.25' in generate_latest(by_accuracy.registry)
    assert b"pushcen_accuracy" not in generate_latest(by_rmse.registry)
    assert b'pushcen_metric{name="rmse"} 1.5' in generate_latest(by_rmse.registry)


def test_tables_of_experiments_have_the_metric_and_count_bytes_until_it_is_low_enough(tmp_path):
    run = by_metric(tmp_path / "a")
    values, sent = run.series("rmse")[1], run.series("bytes_sent")[1]
    falling = [0.9 - value for value in values]
    rows = tuple(row | {"rmse": value} for row, value in zip(run.rows, falling, strict=True))
    point = Point(Row(label="PushCen", name="pushcen"), 0.4, {0: Run(run.folder, run.config, rows, run.summary)})
    experiment = Experiment(title="t", table="none", rows={"pushcen": point.row})
    table = accuracy_table(experiment, "cifar10", "", [point])
    assert "RMSE, lower is better" in [column.title for column in table.columns]
    assert table.rows[0][2] == falling[-1]
    shown = bytes_table(experiment, "", [point], 0.4)
    reached = next(at for at in range(len(falling) - 1) if max(falling[at : at + 2]) <= 0.4)
    assert shown.columns[-1].title == "until 0.4"
    assert shown.cells()[0][-1] == f"{size(sent[reached])}\nT = {rows[reached]['time']:g}"
