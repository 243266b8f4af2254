"""The commands, end to end: real runs of a few clients, in folders of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import pushcen
from pushcen.cli import app
from pushcen.runs import Run

SMALL = ["--clients", "4", "--horizon", "1", "--workers", "1"]


TASK = """
import torch
from pushcen.learning import Task
def lines(client, clients):
    inputs = torch.randn(40, 3, generator=torch.Generator().manual_seed(client))
    targets = (inputs.sum(1) > 0).long()
    return Task(torch.nn.Linear(3, 2), (inputs[:32], targets[:32]), (inputs[32:], targets[32:]))
def zeros(client, clients):
    task = lines(client, clients)
    torch.nn.init.zeros_(task.model.weight)
    return task
def loaded(client, clients):
    task = lines(client, clients)
    data = torch.utils.data.TensorDataset(*task.train)
    return Task(task.model, torch.utils.data.DataLoader(data, batch_size=8, shuffle=True), task.test)
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One small run, named `first`."""
    folder = tmp_path_factory.mktemp("cli") / "runs"
    run("simulate", *SMALL, "--runs", folder, "--name", "first", "--track", "tensorboard")
    return folder


def test_a_run_leaves_a_whole_folder(runs):
    first = runs / "first"
    names = {path.name for path in first.iterdir()}
    assert names >= {"config.toml", "metrics.jsonl", "summary.json", "checkpoint", "accuracy.png", "accuracy.svg"}
    done = Run.open(first)
    assert done.finished
    assert done.last["time"] == 1.0
    assert done.config["clients"] == 4
    assert list((first / "tensorboard").glob("events.*"))


def test_no_absolute_path_is_inside_so_that_a_run_can_be_copied(runs, tmp_path):
    for file in (runs / "first").rglob("*"):
        if file.is_file():
            assert str(runs).encode() not in file.read_bytes(), file
    moved = tmp_path / "moved"
    (runs / "first").rename(moved)
    try:
        assert "PushCen" in run("report", moved, "--table", "csv").stdout
        run("export", moved, "--client", 0)
    finally:
        moved.rename(runs / "first")


def test_a_name_that_is_taken_is_refused_and_without_one_there_is_always_a_folder(runs, tmp_path):
    said = run("simulate", *SMALL, "--runs", runs, "--name", "first", code=2).stderr
    assert "exists; go on with it by --resume" in said
    assert "is finished; there is nothing to go on with" in run("simulate", "--resume", runs / "first", code=2).stderr
    (tmp_path / "digits-independent").mkdir()
    run("simulate", *SMALL, "--method", "independent", "--runs", tmp_path)
    assert Run.open(tmp_path / "digits-independent-2").finished


def test_a_dry_run_describes_the_world_and_makes_nothing(tmp_path):
    said = run("simulate", "--dry-run", "--runs", tmp_path / "runs").stdout
    for words in ("20, seed 0", "38,282 parameters", "compute events", "5 receivers", "join late", "memory"):
        assert words in said
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_foretells_what_the_run_counts(runs):
    said = run("simulate", *SMALL, "--dry-run").stdout
    done = Run.open(runs / "first")
    assert int(re.search(r"about ([\d,]+) compute events", said)[1]) == pytest.approx(done.number("steps"), abs=4)
    per_push = float(re.search(r"a push +([\d.]+) kB", said)[1]) * 1000
    assert per_push >= done.number("bytes_per_push") > per_push / 4  # before others joined, fewer were there


def test_mistakes_are_one_line(tmp_path):
    result = run("simulate", "--set", "network.los=1", "--runs", tmp_path, code=2)
    assert result.stderr.startswith("error: network.los = '1': no such key. Did you mean network.loss?")
    assert "Traceback" not in result.output
    assert run("simulate", "nowhere.toml", code=2).stderr.startswith("error: nowhere.toml: no such file")


def test_a_warning_is_one_line_that_says_nothing_of_our_sources(tmp_path):
    (tmp_path / "my_task.py").write_text(TASK)
    command = [
        sys.executable,
        "-c",
        "from pushcen.cli import app; app()",
        "simulate",
        "--task",
        "my_task:zeros",
        *SMALL,
    ]
    command += ["--set", "method.profile=paper"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr.splitlines()
    assert [line.split(":")[:2] for line in said if "zero" in line] == [["warning", " weight"]]
    assert not [line for line in said if ".py" in line]


def test_ctrl_c_leaves_a_run_that_goes_on_to_the_same_end(tmp_path, monkeypatch):
    (tmp_path / "my_task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = [str(Path(sys.executable).with_name("pushcen")), "simulate", "--task", "my_task:lines", "--runs", "runs"]
    command += ["--clients", "4", "--horizon", "20", "--workers", "1", "--set", "executor.ahead=2"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, "--name", "cut"], stderr=subprocess.PIPE, text=True, env=env)
    metrics = tmp_path / "runs" / "cut" / "metrics.jsonl"
    while process.poll() is None and not (metrics.is_file() and metrics.stat().st_size):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 130, said
    assert "go on with: pushcen simulate --resume runs/cut" in said
    assert not Run.open("runs/cut").finished
    run("simulate", "--resume", "runs/cut")
    run(*command[1:], "--name", "whole")
    cut, whole = (json.loads(Path("runs", name, "summary.json").read_text()) for name in ("cut", "whole"))
    assert cut | {"times": 0} == whole | {"times": 0}
    assert metrics.read_bytes() == Path("runs/whole/metrics.jsonl").read_bytes()


def test_a_comparison_runs_every_method_once_in_the_same_world(tmp_path):
    command = [
        "compare",
        "--methods",
        "pushcen,swift,independent",
        *SMALL,
        "--runs",
        tmp_path,
        "--set",
        "neighbours.degree=2",
        "--set",
        "method.clusters=8",
    ]
    said = run(*command).stdout
    for title in ("PushCen", "SWIFT", "Independent"):
        assert title in said
    folder = tmp_path / "compare-digits"
    done = {name: Run.open(folder / name) for name in ("pushcen", "swift", "independent")}
    assert done["pushcen"].config["method"]["clusters"] == 8
    assert len({json.dumps([r.config["data"], r.config["participation"], r.joins()]) for r in done.values()}) == 1
    assert (folder / "accuracy.png").is_file()
    before = {file: file.stat().st_mtime_ns for file in folder.glob("*/*") if file.is_file()}
    run(*command)
    assert {file: file.stat().st_mtime_ns for file in before} == before  # nothing was run again
    run(*command[:2], "independent", *command[3:-1], "seed=5")
    assert Run.open(tmp_path / "compare-digits-2" / "independent").config["seed"] == 5
    said = run(*command[:-2], "--seed", "5", "--name", "compare-digits", code=2).stderr
    assert "holds another run" in said
    assert "seed is 0 there and 5 here" in said


def test_an_option_that_no_compared_method_has_is_refused(tmp_path):
    said = run("compare", "--methods", "swift,independent", "--set", "method.clusters=8", "--runs", tmp_path, code=2)
    assert "method.clusters = '8': none of the methods has it" in said.stderr


def test_a_sweep_runs_every_point_with_every_seed(tmp_path):
    over = ["--over", "method.clusters=4,32", "--over", "network.loss=0"]
    said = run("sweep", *over, "--seeds", "2", *SMALL, "--runs", tmp_path).stdout
    assert "K 32, loss 0" in said
    folders = sorted(str(file.parent.relative_to(tmp_path)) for file in tmp_path.rglob("summary.json"))
    points = [f"sweep-digits/method.clusters={k},network.loss=0/seed-{s}" for k in (32, 4) for s in (0, 1)]
    assert folders == points
    table = (tmp_path / "sweep-digits" / "sweep.csv").read_text().splitlines()
    finals = [[Run.open(tmp_path / p).number("accuracy") for p in points[at : at + 2]] for at in (2, 0)]
    difference = sum(finals[1]) / 2 - sum(finals[0]) / 2
    assert float(table[2].split('"')[2].split(",")[4]) == pytest.approx(difference)


@pytest.mark.parametrize("which", [["--client", "2"], ["--reference"]])
def test_an_exported_model_loads_as_the_example_says_and_is_as_good(runs, tmp_path, which):
    said = run("export", runs / "first", *which, "--out", tmp_path / "model.safetensors").stdout
    example = said.split("\n", 1)[1]
    names = {}
    exec(example, names)
    assert len(example.strip().splitlines()) == 3
    if which[0] == "--client":
        from pushcen.config import load_config
        from pushcen.learning import Learner

        task = load_config(runs / "first" / "config.toml").task_function()(2, 4)
        task.model = names["model"]
        assert Learner(task).evaluate().metric == Run.open(runs / "first").last["clients"]["2"]


def test_the_reference_model_of_clients_alone_is_their_mean(tmp_path):
    from safetensors.torch import load_file

    run(
        "simulate",
        *SMALL,
        "--method",
        "independent",
        "--set",
        "participation.delayed=0",
        "--runs",
        tmp_path,
        "--name",
        "a",
    )
    run("export", tmp_path / "a", "--reference")
    each = []
    for client in range(4):
        run("export", tmp_path / "a", "--client", client)
        each.append(load_file(tmp_path / "a" / f"model-{client}.safetensors"))
    mean = {name: torch.stack([one[name].double() for one in each]).mean(0) for name in each[0]}
    for name, tensor in load_file(tmp_path / "a" / "model-reference.safetensors").items():
        torch.testing.assert_close(tensor.double(), mean[name], atol=1e-6, rtol=1e-5)


def test_export_says_which_model_it_needs(runs):
    assert "either --client N or --reference" in run("export", runs / "first", code=2).stderr
    assert "client = 9: must be a whole number from 0" in run("export", runs / "first", "--client", "9", code=2).stderr


def test_a_report_is_figures_tables_and_one_page(runs, tmp_path):
    said = run("report", runs / "first", "--out", tmp_path, "--formats", "png,pdf").stdout
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"report.html", "accuracy.png", "accuracy.pdf", "table.tex", "table.md", "table.csv"}
    assert "report.html" in said
    assert "must be one of png, svg, pdf" in run("report", runs / "first", "--formats", "gif", code=2).stderr
    assert "epsilon_c" in run("report", runs / "first", "--theory").stdout
    assert run("report", runs / "first", "--table", "markdown").stdout.startswith("| method |")


def test_a_task_of_ones_own_works_by_name_and_from_python(tmp_path, monkeypatch):
    (tmp_path / "my_task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    run("simulate", *SMALL, "--task", "my_task:lines", "--runs", tmp_path, "--name", "a")
    assert "data" not in Run.open(tmp_path / "a").config
    from my_task import lines

    result = pushcen.simulate(task=lines, clients=4, horizon=1.0, executor={"workers": 1}, folder=tmp_path / "b")
    assert (tmp_path / "a" / "metrics.jsonl").read_bytes() == (tmp_path / "b" / "metrics.jsonl").read_bytes()
    assert result.frame["accuracy"].iloc[-1] == result.summary["final"]["accuracy"]
    assert "my_task.lines(0, 4).model" in run("export", tmp_path / "b", "--client", "1").stdout


def test_python_compares_method_objects_and_goes_on_where_it_stopped(tmp_path):
    from pushcen.methods import Independent, PushCen

    settings = {"clients": 3, "horizon": 0.5, "folder": tmp_path}
    results = pushcen.compare([PushCen(clusters=4), Independent()], **settings)
    assert results["pushcen"].run.config["method"]["clusters"] == 4
    assert set(results.frame["method"]) == {"pushcen", "independent"}
    assert results.plot().axes
    assert "<table>" in results._repr_html_()
    before = (tmp_path / "pushcen" / "summary.json").stat().st_mtime_ns
    pushcen.compare([PushCen(clusters=4)], **settings)
    assert (tmp_path / "pushcen" / "summary.json").stat().st_mtime_ns == before
    with pytest.raises(pushcen.PushcenError, match=r"method\.clusters is 4 there and 8 here"):
        pushcen.compare([PushCen(clusters=8)], **settings)


def test_a_table_of_many_worlds_is_laid_out_as_asked_and_refused_before_anything_runs(tmp_path):
    words = ["compare", "--methods", "pushcen,independent", "--over", "data.alpha=0.1,1.0", *SMALL, "--runs", tmp_path]
    for wrong, said in {
        ("--base", "swift"): "base = 'swift': must be one of pushcen",
        ("--rows", "data.alfa"): "rows = 'data.alfa': must be method, or a key",
        ("--columns", "seed"): "columns = 'seed': must be method",
        ("--table", "excel"): "table = 'excel': must be one of markdown",
        ("--seeds", "0"): "--seeds",
        ("--jobs", "0"): "--jobs",
    }.items():
        assert said in run(*words, *wrong, code=2).stderr
    assert list(tmp_path.iterdir()) == []
    shown = run(*words, "--table", "csv").stdout.splitlines()
    assert "accuracy, alpha 0.1, difference" in shown[0]
    assert [line.split(",")[0] for line in shown[1:]] == ["PushCen", "Independent"]
    folder = tmp_path / "compare-digits"
    assert (folder / "table.csv").read_text().splitlines() == shown
    across = run(*words, "--rows", "data.alpha", "--columns", "method", "--table", "markdown", "--show").stdout
    assert across.splitlines()[0].count("PushCen") == 1
    assert [line.split(" | ")[0] for line in across.splitlines()[2:4]] == ["| alpha 0.1", "| alpha 1"]
    more = [*words[:2], "pushcen,independent,divshare", *words[3:], "--show"]
    said = run(*more)
    assert "2 of 6 runs are not finished." in said.stderr
    assert "Independent" in said.stdout


def test_what_is_taken_of_dataloaders_is_said_once_for_all_clients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loading.py").write_text(TASK)
    said = run("simulate", "--task", "loading.py:loaded", *SMALL, "--folder", "run").output
    assert said.count("out of a DataLoader") == 1
    assert "the training data of client 0: took dataset, collate function and batch size, 8, out of" in said
