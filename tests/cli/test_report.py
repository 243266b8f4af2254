"""`pushcen report` on the committed runs: methods down, alphas across, in every form; errors say what is there."""

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.runs import Run
from tests.runs.made import make_run

SMALL = Path(__file__).parents[2] / "results" / "cifar10-small"
METHODS = ("pushcen", "pushcen-paper", "async-dfedavg", "swift", "divshare", "independent")
FOLDERS = [str(path) for name in METHODS for path in sorted(SMALL.glob(f"{name}-alpha*-seed?"))]
CROSSED = [*FOLDERS, "--rows", "method", "--columns", "data.alpha", "--base", "async-dfedavg", "--target", "60"]


def report(*words, code=0):
    result = CliRunner().invoke(app, ["report", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def test_six_methods_at_three_alphas_with_three_seeds():
    rows = list(csv.DictReader(io.StringIO(report(*CROSSED, "--table", "csv").stdout)))
    assert [row["method"] for row in rows] == [
        "PushCen", "PushCen, the paper's rules", "Async-DFedAvg", "SWIFT, random receivers", "DivShare", "Independent"
    ]  # fmt: skip
    for alpha, folder in (("0.1", "alpha0.1"), ("0.4", "alpha0.4"), ("1", "alpha1")):
        runs = [Run.open(SMALL / f"divshare-{folder}-seed{seed}") for seed in range(3)]
        base = [Run.open(SMALL / f"async-dfedavg-{folder}-seed{seed}") for seed in range(3)]
        mine, its = ([run.number("accuracy") for run in some] for some in (runs, base))
        assert float(rows[4][f"accuracy, alpha {alpha}, mean"]) == pytest.approx(sum(mine) / 3)
        assert float(rows[4][f"accuracy, alpha {alpha}, difference"]) == pytest.approx((sum(mine) - sum(its)) / 3)
    assert rows[1]["until 60 %, alpha 0.1, reached"] == "2"


def test_the_page_of_commands_shows_what_the_command_prints():
    page = (SMALL.parents[1] / "docs" / "commands.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ") and "± " in line]
    printed = report(*CROSSED, "--table", "markdown").stdout.splitlines()
    assert len(shown) == 3
    assert all(any(line.startswith(row.removesuffix(" |")) for line in printed) for row in shown)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("latex", r"PushCen & \textbf{74.5 $\pm$ 2.5} & \textbf{56.6 $\pm$ 1.9} & \textbf{50.4 $\pm$ 0.5} & "),
        ("markdown", "| PushCen | **74.5 ± 2.5**<br>+0.2 [-0.6, +0.9] |"),
        ("html", "<td>PushCen</td><td class=number><strong>74.5 ± 2.5</strong><br>+0.2 [-0.6, +0.9]</td>"),
    ],
)
def test_every_form_has_the_same_cells(form, expected):
    assert expected in report(*CROSSED, "--table", form).stdout


def test_what_cannot_be_is_told_with_what_can():
    for words, said in (
        (
            ["--columns", "data.alfa"],
            "columns = 'data.alfa': no run has such a key; the runs differ in method, data.alpha",
        ),
        (["--columns", "data.alpha", "--base", "fedavg"], "base = 'fedavg': there is no such row; rows are 'PushCen'"),
        (["--target", "0.6"], "target = 0.6: must be in percent, as accuracy is: 60 for 60 %"),
        (["--figure", "speed"], "figure = 'speed': no run has it; they have accuracy"),
        (["--rows", "data.alpha"], "alpha 0.1: runs differ in method.feedback, method.full_after, "),
    ):
        assert said in " ".join(report(*FOLDERS, *words, code=2).stderr.split())


def test_a_page_has_the_table_and_a_panel_for_each_point(tmp_path):
    for method in ("pushcen", "swift"):
        for seed in range(2):
            for alpha in (0.1, 0.4):
                folder = make_run(tmp_path / "runs" / f"{method}-{alpha}-{seed}", method, seed)
                config = (folder / "config.toml").read_text().replace("alpha = 0.4", f"alpha = {alpha}")
                (folder / "config.toml").write_text(config)
    words = [tmp_path / "runs", "--columns", "data.alpha", "--base", "swift", "--target", "80", "--formats", "svg"]
    report(*words, "--out", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<th colspan=2>accuracy %</th>" in page
    assert "<figure id=accuracy_bytes class=wide>" in page
    drawn = (tmp_path / "report" / "accuracy_bytes.svg").read_text()
    assert all(text in drawn for text in ("alpha 0.1", "alpha 0.4", "target 80 %", "the best for so many bytes"))
    assert "until 80 %" in (tmp_path / "report" / "table.tex").read_text().replace("\\%", "%")


def test_one_run_shows_what_it_took_to_reach_a_target(tmp_path):
    folder = make_run(tmp_path / "a")
    assert "until 60 %" in report(folder, "--target", 60, "--table", "markdown").stdout
    [row] = csv.DictReader(io.StringIO(report(folder, "--target", 60, "--table", "csv").stdout))
    run = Run.open(folder)
    first = next(at for at in range(10) if all(row["accuracy"] >= 0.6 for row in run.rows[at : at + 2]))
    assert float(row["until 60 %, bytes_sent, median"]) == run.rows[first]["bytes_sent"]
    assert float(row["until 60 %, time, median"]) == first
