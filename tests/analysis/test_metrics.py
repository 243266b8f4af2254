"""Tables, figures and pages by any metric: its own name, unit and direction."""

import json

import pytest

from pushcen.analysis import Group, comparison, group, sweep, write_report
from pushcen.analysis.figures import figures_of
from pushcen.analysis.report import draw_accuracy
from pushcen.analysis.run_tables import late_clients
from pushcen.errors import RunError
from pushcen.runs import Run
from tests.runs.made import make_run

RMSE = {"name": "rmse", "higher_is_better": False, "percent": False, "pooled": True}
F1 = {"name": "f1", "higher_is_better": True, "percent": False, "pooled": True}


def by_metric(folder, metric=RMSE, others=(), left_out=0, **options):
    """Turn a made run into one that another metric measured."""
    make_run(folder, **options)
    rows = []
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = {key.replace("accuracy", metric["name"]): value for key, value in json.loads(line).items()}
        row |= {"metric": metric, f"{metric['name']}_pooled": 0.4321}
        row |= {"metrics": list(others)} if others else {}
        row |= {other["name"]: 0.75 for other in others}
        row |= {f"{metric['name']}_left_out": left_out} if left_out else {}
        rows.append(json.dumps(row) + "\n")
    (folder / "metrics.jsonl").write_text("".join(rows))
    return Run.open(folder)


@pytest.fixture(scope="module")
def regressions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [by_metric(folder / f"{m}-{s}", method=m, seed=s) for m in ("pushcen", "swift") for s in range(2)]


def test_a_table_has_the_metric_with_its_name_direction_and_pooled(regressions):
    table = comparison(group(regressions))
    titles = [column.title for column in table.columns]
    assert titles[:7] == [
        "method", "RMSE, lower is better", "± over seeds", "SD", "worst tenth", "delayed", "RMSE, pooled",
    ]  # fmt: skip
    assert table.notes[0].startswith("RMSE, lower is better: on each client's own test data")
    assert "accuracy" not in table.to("html")
    assert table.cells()[0][6] == "0.4321"


def test_other_metrics_have_columns_of_their_own(tmp_path):
    table = comparison(group([by_metric(tmp_path / "a", others=[F1])]))
    titles = [column.title for column in table.columns]
    assert titles[5:8] == ["RMSE, pooled", "F1 (macro), higher is better", "a push"]
    assert table.rows[0][6] == 0.75


def test_figures_are_called_by_the_metric_and_their_axes_say_which_way_is_better(regressions):
    groups, figures = group(regressions), figures_of(regressions[0].measure)
    assert list(figures) == ["rmse", "delayed", "rmse_bytes", "bytes_per_push", "mass"]
    assert figures["rmse"][0] == "RMSE over pseudo-time"
    axes = figures["rmse"][1](groups).axes[0]
    assert axes.get_ylabel() == "RMSE, mean over clients; lower is better"
    assert max(axes.lines[0].get_ydata()) < 2  # not in percent


def test_a_report_and_a_runs_own_figure_have_files_by_the_metric(regressions, tmp_path):
    files = {file.name for file in write_report(group(regressions), tmp_path)}
    assert {"rmse.png", "rmse_bytes.svg"} <= files
    assert not any("accuracy" in name for name in files)
    assert "ccuracy" not in (tmp_path / "report.html").read_text()
    draw_accuracy(regressions[0])
    assert (regressions[0].folder / "rmse.png").is_file()


def test_the_best_of_a_late_client_is_its_lowest(regressions):
    run = regressions[0]
    table = late_clients(run)
    client = table.rows[0][0]
    assert table.rows[0][2] == min(run.client_series(client)[1])
    assert table.columns[2].title == "best RMSE, lower is better"


def test_a_sweep_compares_the_metric_in_its_own_unit(regressions):
    table = sweep({"one": Group("one", tuple(regressions[:2])), "other": Group("other", tuple(regressions[2:]))})
    assert table.columns[2].title == "RMSE, lower is better"
    mean = sum(run.number("rmse") for run in regressions[:2]) / 2
    assert table.cells()[0][2] == f"{mean:.4g}"
    assert [column.title for column in sweep({"one": Group("one", tuple(regressions[:2]))}, "loss").columns][
        2
    ] == "loss"


def test_runs_by_different_metrics_are_not_shown_together(regressions, tmp_path):
    other = Run.open(make_run(tmp_path / "a"))
    with pytest.raises(RunError, match=r"a is measured by accuracy, .*pushcen-0 by RMSE: .* the same first metric"):
        group([other, regressions[0]])


def test_clients_that_are_left_out_are_told(tmp_path):
    notes = comparison(group([by_metric(tmp_path / "a", left_out=3)])).notes
    assert "PushCen: clients not counted, since their RMSE is undefined for them, or not finite: 3" in notes


@pytest.mark.parametrize("metric", [{"name": "../../etc"}, {"name": 7}, {"name": "<b>"}, "rmse", ["rmse"], {}, None])
def test_a_folder_that_names_no_metric_that_can_be_is_measured_by_accuracy(tmp_path, metric):
    run = Run.open(make_run(tmp_path / "a"))
    rows = tuple(row | {"metric": metric, "metrics": 3} for row in run.rows)
    assert Run(run.folder, run.config, rows, None).measure.name == "accuracy"


def test_a_frame_has_numbers_only(regressions):
    assert not any(name.startswith("metric") for name in regressions[0].frame().columns)
