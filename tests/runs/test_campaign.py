"""Many real runs, small ones: the same bytes however they are carried out, stopped, killed and gone on with."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pushcen
from pushcen.cli import app
from pushcen.config import load_config
from pushcen.runs import Run, RunJob, carry_out, launch, one_by_one

SMALL = ["--clients", "4", "--horizon", "1"]
WORLDS = ["compare", "--methods", "pushcen,async-dfedavg", "--seeds", "2", "--over", "data.alpha=0.1,1.0", *SMALL]
MINE = """
from dataclasses import dataclass
from pushcen.learning import Task
from pushcen.methods import AsyncDFedAvg, Independent
import torch

@dataclass(frozen=True)
class Mine(AsyncDFedAvg):
    name = "mine"

@dataclass(frozen=True)
class Broken(Independent):
    name = "broken"
    def rules(self, *args, **options):
        return [].pop()

def lines(client, clients):
    inputs = torch.randn(40, 3, generator=torch.Generator().manual_seed(client))
    targets = (inputs.sum(1) > 0).long()
    return Task(torch.nn.Linear(3, 2), (inputs[:32], targets[:32]), (inputs[32:], targets[32:]))
"""


class Maker:
    def lines(self, client, clients):
        """A method of an object: its name leads to another thing."""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


def written(folder):
    """What the runs in a folder are, to the byte; without how long they took."""
    found = {}
    for config in sorted(folder.glob("**/config.toml")):
        summary = json.loads((config.parent / "summary.json").read_text())
        found[str(config.parent.relative_to(folder))] = (
            config.read_bytes(),
            (config.parent / "metrics.jsonl").read_bytes(),
            summary | {"times": 0},
        )
    return found


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of one's own, in which commands are run."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # another test's
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.fixture(scope="module")
def in_turn(tmp_path_factory):
    """Two methods in two worlds with two seeds, one after the other."""
    folder = tmp_path_factory.mktemp("turn")
    run(*WORLDS, "--runs", folder)
    return folder / "compare-digits"


def test_two_at_a_time_are_the_same_bytes_as_one_after_the_other(in_turn, tmp_path):
    run(*WORLDS, "--jobs", "2", "--runs", tmp_path)
    there = written(tmp_path / "compare-digits")
    assert len(there) == 8
    assert there == written(in_turn)
    for name in ("table.md", "table.tex", "table.csv", "accuracy.svg", "accuracy_bytes.svg"):
        assert (tmp_path / "compare-digits" / name).read_bytes() == (in_turn / name).read_bytes()
    assert (tmp_path / "compare-digits" / "data.alpha=0.1" / "pushcen-seed-1" / "accuracy.png").is_file()


def test_the_commands_of_a_list_give_the_same_bytes_and_can_be_run_again(in_turn, tmp_path):
    place = tmp_path / "my runs"  # to be quoted
    lines = run(*WORLDS, "--runs", place, "--list").stdout.splitlines()
    assert len(lines) == 8
    assert not place.exists()
    script = tmp_path / "job.sh"
    said = run(*WORLDS, "--runs", place, "--slurm", script).stdout
    assert f"8 runs: sbatch {script}" in said
    assert "#SBATCH --array=0-7\n" in script.read_text()
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for command in (["sh", "-c", lines[7]], ["bash", script]):
        subprocess.run(command, env=env | {"SLURM_ARRAY_TASK_ID": "2"}, check=True, capture_output=True)
    there, whole = written(place / "compare-digits"), written(in_turn)
    assert list(there) == ["data.alpha=1.0/async-dfedavg-seed-1", "data.alpha=1.0/pushcen-seed-0"]
    assert there == {name: whole[name] for name in there}
    wrong = subprocess.run(["bash", script], env=env | {"SLURM_ARRAY_TASK_ID": "8"}, capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr) == (2, "SLURM_ARRAY_TASK_ID = '8': must be a number from 0 to 7\n")
    assert "PushCen" in run(*shlex.split(lines[2])[1:]).stdout  # once more
    assert "PushCen" in run(*shlex.split(said.partition("is finished: ")[2])[1:]).stdout
    assert written(place / "compare-digits") == there  # nothing was run


def test_python_takes_seeds_points_and_jobs_and_uses_what_is_there(in_turn):
    before = {file: file.stat().st_mtime_ns for file in in_turn.glob("**/*.json*")}
    world = {"clients": 4, "horizon": 1.0}
    over = {"data.alpha": [0.1, 1.0]}
    results = pushcen.compare(["pushcen", "async-dfedavg"], seeds=2, over=over, jobs=2, folder=in_turn, **world)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert "data.alpha=0.1/async-dfedavg-seed-1" in results
    assert len(results) == 8
    frame = results.frame[results.frame["time"] == 1.0]
    assert sorted(zip(frame["method"], frame["data.alpha"], frame["seed"], strict=True))[::3] == [
        ("async-dfedavg", 0.1, 0),
        ("async-dfedavg", 1.0, 1),
        ("pushcen", 1.0, 0),
    ]
    assert results.table.to("csv") == (in_turn / "table.csv").read_text()
    assert [axes.get_title("left") for axes in results.plot().axes] == ["alpha 0.1", "alpha 1"]


def test_a_method_that_fails_is_named_and_stops_no_other(own):
    words = ["compare", "--methods", "mine:Broken,mine:Mine", *SMALL, "--seeds", 2, "--runs", own]
    for jobs in (["--jobs", 2], []):
        said = run(*words, *jobs, code=1)
        assert "Mine" in said.stdout
        for seed in (0, 1):
            assert f"mine_Broken-seed-{seed}: IndexError: pop from empty list (mine.py, line 15)" in said.stderr
            assert Run.open(own / "compare-digits" / f"mine_Mine-seed-{seed}").finished
        assert "2 runs are not finished; run the same command to go on." in said.stderr
        [file, _] = (own / "compare-digits").glob("*/traceback.txt")
        assert "return [].pop()" in file.read_text()


def test_python_names_what_failed_and_why_and_what_other_processes_cannot_have(own):
    world = {"clients": 3, "horizon": 0.5, "folder": own / "a"}
    with pytest.raises(pushcen.PushcenError, match=r"1 of 2 runs failed:\nmine_Broken: IndexError") as raised:
        pushcen.compare(["mine:Broken", "mine:Mine"], **world)
    assert isinstance(raised.value.__cause__, IndexError)
    assert Run.open(own / "a" / "mine_Mine").finished
    for task in (lambda client, clients: None, Maker().lines):
        with pytest.raises(pushcen.PushcenError, match="it must be in a module"):
            pushcen.compare(["mine:Mine"], task=task, jobs=2, **world)
    with pytest.raises(pushcen.PushcenError, match="observers"):
        pushcen.compare(["mine:Mine"], observers=[pushcen.simulation.Quiet()], jobs=2, **world)
    with pytest.raises(pushcen.PushcenError, match="jobs = 0"):
        pushcen.compare(["mine:Mine"], jobs=0, **world)


def longer(own, seed, **more):
    """A run that is busy for a while, and saves itself all the time."""
    world = {"task.function": "mine:lines", "clients": 4, "horizon": 15.0, "checkpoint.seconds": 0.2, "seed": seed}
    return load_config("digits", world | {"executor.ahead": 2, "executor.workers": 1} | more)


def children():
    return [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]


def test_a_job_that_is_killed_in_the_middle_stops_no_other_and_goes_on_to_the_same_end(own):
    jobs = [RunJob(f"seed-{seed}", longer(own, seed), own / f"seed-{seed}") for seed in (0, 1)]
    killed = []

    def kill(report):
        if report.job is jobs[0] and report.share > 0.1 and not killed and list(own.glob("seed-0/checkpoint/*")):
            [worker] = [pid for pid in children() if str(own / "seed-0") in open_files(pid)]
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    first, second = carry_out(jobs, at_once=2, tell=kill)
    assert killed
    assert (first.done, second.done) == (False, True)
    assert first.error == f"its process ended with exit code -9; {own / 'seed-0'} can go on from its last save"
    before = (own / "seed-0" / "metrics.jsonl").stat().st_size
    assert before
    again = carry_out(jobs, at_once=2)
    assert all(report.done for report in again)
    launch(longer(own, 0), own / "whole" / "seed-0")
    assert written(own / "whole")["seed-0"] == written(own)["seed-0"]


def open_files(pid):
    """The files and folders that a process has open, as one text."""
    return " ".join(str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())


@pytest.mark.slow
def test_one_ctrl_c_saves_all_that_is_running_and_the_same_command_goes_on(own):
    words = ["sweep", "--task", "mine:lines", "--clients", "4", "--horizon", "30", "--workers", "1", "--seeds", "2"]
    words += ["--set", "executor.ahead=2", "--jobs", "2", "--runs", "runs"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [str(Path(sys.executable).with_name("pushcen")), *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True)
    folders = [own / "runs" / "sweep-lines" / "as_it_stands" / f"seed-{seed}" for seed in (0, 1)]
    while process.poll() is None and not all((folder / "status.json").is_file() for folder in folders):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 130, said
    assert "interrupted; everything is saved. Run the same command to go on." in said
    assert "Traceback" not in said
    status = [json.loads((folder / "status.json").read_text())["status"] for folder in folders]
    assert status == ["interrupted", "interrupted"]
    assert all((folder / "checkpoint").is_dir() for folder in folders)
    run(*words)
    assert all(Run.open(folder).finished for folder in folders)


def test_ctrl_c_before_anything_runs_ends_at_once(own):
    def interrupt():
        raise KeyboardInterrupt

    jobs = [RunJob(f"seed-{seed}", longer(own, seed), own / f"seed-{seed}") for seed in (0, 1)]
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        carry_out([RunJob("done", jobs[0].config, done(own)), *jobs], at_once=2, tell=lambda _: interrupt())
    assert time.monotonic() - begun < 60
    assert children() == []


def done(own):
    launch(longer(own, 0, horizon=0.5), own / "done")
    return own / "done"


def test_one_by_one_stops_at_an_interruption(own, monkeypatch):
    jobs = [RunJob(f"seed-{seed}", longer(own, seed, horizon=5.0), own / f"seed-{seed}") for seed in (0, 1)]

    class Stop(pushcen.simulation.Quiet):
        def evaluated(self, row):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        one_by_one(jobs, observers=[Stop()])
    assert not Run.open(own / "seed-0").finished
    assert not (own / "seed-1").exists()
    assert [report.done for report in one_by_one(jobs)] == [True, True]
