"""pushcen beside other tools: the table, and what is said of a tool that cannot be installed or does not work."""

import importlib.util
import json
import os
import sys
import time

import pytest
import torch
from typer.testing import CliRunner

from pushcen.bench import beside, environments, processes
from pushcen.bench.environments import ToolError
from pushcen.bench.processes import Watched
from pushcen.cli import app
from pushcen.models import LeNet


def figures(wall=30.0, bare_wall=25.0, peak=500.0):
    return {
        "versions": {"tool": "1.2"},
        "updates": 300,
        "start_seconds": 2.0,
        "wall": wall,
        "bare_wall": bare_wall,
        "processor": 2 * wall,
        "bare_processor": 2 * bare_wall,
        "peak": peak,
        "bare_peak": 400.0,
    }


def found(**peers):
    return {"clients": 100, "rounds": 3, "load_before": 0.1, "cores": 2, "peers": peers}


def run_here(tmp_path, program, limit=60.0):
    script = tmp_path / "script.py"
    script.write_text(program)
    return processes.watch([sys.executable, str(script)], dict(os.environ), tmp_path, limit)


@pytest.fixture
def peers(tmp_path, monkeypatch):
    """Scripts of one's own in place of the tools', in the environment that runs the tests."""

    def put(**programs):
        scripts = tmp_path / "scripts"
        scripts.mkdir()
        for name, program in {"bare": GOOD, **programs}.items():
            (scripts / f"{name}.py").write_text(program)
        monkeypatch.setattr(beside, "SCRIPTS", scripts)
        monkeypatch.setattr(beside, "TOOLS", [beside.Tool(name, f"{name}.py") for name in programs])
        monkeypatch.setattr(beside, "installed", lambda name, requirements: sys.executable)

    return put


RESULT = '{"updates": 6, "seconds": 0.3, "began": time.time() - 0.3, "versions": {"tool": "1.2"}}'
GOOD = f"import json, os, time; time.sleep(0.4); os.write(1, b'\\xff\\n'); print(json.dumps({RESULT})); print('noise')"


def test_the_table_has_every_figure_as_a_multiple_of_pushcens():
    table = beside.table(found(pushcen=figures(), flower=figures(wall=75.0, peak=1500.0)))
    titles = [column.title for column in table.columns]
    pushcen, flower = (dict(zip(titles, row, strict=True)) for row in table.rows)
    assert (pushcen["overhead"], flower["overhead"]) == (5.0, 50.0)
    first, second = [at for at, title in enumerate(titles) if title == "x pushcen"]
    assert [row[first] for row in table.rows] == [1.0, 10.0]
    assert [row[second] for row in table.rows] == [1.0, 3.0]
    assert "flower: tool 1.2" in table.to("markdown")


@pytest.mark.parametrize("base", [{}, {"pushcen": figures(wall=25.0)}, {"pushcen": {"failed": "no"}}])
def test_a_multiple_of_nothing_is_not_given(base):
    row = beside.table(found(**base, flower=figures())).cells()[-1]
    assert row[0] == "flower"
    assert row[4] == "-"


def test_the_table_says_why_a_tool_has_no_figures():
    table = beside.table(found(pushcen=figures(), flower={"failed": "not installed: ERROR: no such thing"}))
    assert [row[0] for row in table.rows] == ["pushcen"]
    assert "flower: not installed: ERROR: no such thing" in table.notes


def test_one_tool_that_fails_does_not_end_the_others(peers):
    peers(broken="raise SystemExit('boom')", rubbish="print('rubbish')", good=GOOD)
    measured = beside.run(clients=2, rounds=3)["peers"]
    assert measured["broken"] == {"failed": "failed: boom"}
    assert measured["rubbish"] == {"failed": "printed no result, but 'rubbish'"}
    assert measured["good"]["updates"] == 6
    assert measured["good"]["wall"] == measured["good"]["bare_wall"] == 50.0
    assert measured["good"]["versions"] == {"tool": "1.2"}


def test_a_tool_that_hangs_is_ended_with_all_that_it_started(peers, tmp_path):
    child = tmp_path / "child"
    hanging = f"""
import pathlib, subprocess, sys, time
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path({str(child)!r}).write_text(str(sleeper.pid))
print("waiting for godot", file=sys.stderr, flush=True)
time.sleep(600)
"""
    peers(hanging=hanging)
    reason = beside.run(clients=2, rounds=1, limit=10.0)["peers"]["hanging"]["failed"]
    assert reason == "not finished in time; it last said: waiting for godot"
    assert int(child.read_text()) not in processes._processes()


def test_a_tool_that_cannot_be_installed_says_what_pip_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    peer = beside.Tool("absent", "run_absent.py", requirements=("no-such-package-as-this",))
    monkeypatch.setattr(beside, "TOOLS", [peer])
    monkeypatch.setattr(environments, "version", lambda _: "0.0.0")  # of torch, which is not looked for either
    reason = beside.run()["peers"]["absent"]["failed"]
    assert reason == "not installed: ERROR: No matching distribution found for torch==0.0.0"
    assert not list(tmp_path.rglob("installed.json"))  # the next time tries again


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    commands, tool = [], tmp_path / "pushcen" / "peers" / "tool"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environments, "_run", lambda command: commands.append(command) or make(command))

    def make(command):
        if "venv" in command:
            (tool / "bin").mkdir(parents=True)
            (tool / "bin" / "python").touch()

    first = environments.installed("tool", ["tool"])
    assert environments.installed("tool", ["tool"]) == first
    assert len(commands) == 2
    environments.installed("tool", ["tool<2"])
    assert len(commands) == 4
    (tool / "bin" / "python").unlink()  # what it was made from is gone
    environments.installed("tool", ["tool<2"])
    assert len(commands) == 6


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "{}",
        '{"updates": 0, "seconds": 1.0, "began": 1e10, "versions": {}}',
        '{"updates": 3, "seconds": NaN, "began": 1e10, "versions": {}}',
        '{"updates": 3, "seconds": -1, "began": 1e10, "versions": {}}',
        '{"updates": 3, "seconds": 1, "began": 5, "versions": {}}',
        '{"updates": 3, "seconds": 1, "began": Infinity, "versions": {}}',
        '{"updates": Infinity, "seconds": 1, "began": 1e10, "versions": {}}',
        '{"updates": 3, "seconds": 1, "began": 1e10, "versions": []}',
        '{"updates": [3], "seconds": 1, "began": 1e10, "versions": {}}',
    ],
)
def test_what_a_script_prints_is_not_believed_blindly(line):
    with pytest.raises(ToolError, match="printed"):
        beside.read_result(Watched(0, line, "", 1e9, 0, []))


def test_a_script_that_dies_without_a_word_is_told_by_its_code(tmp_path):
    with pytest.raises(ToolError, match="exit code -9"):
        beside.read_result(run_here(tmp_path, "import os; os.kill(os.getpid(), 9)"))


def test_memory_and_processor_time_of_children_count(tmp_path):
    child = """
import time
block, end = b"x" * 300_000_000, time.process_time() + 1
while time.process_time() < end:
    pass
time.sleep(1)
"""
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    watched = run_here(tmp_path, program)
    assert watched.code == 0
    assert 300e6 < watched.peak < 400e6
    assert 1.0 <= watched.processor_seconds(watched.began, time.time()) < 2.0


def test_a_name_that_is_none_is_refused_with_those_that_are():
    result = CliRunner().invoke(app, ["bench", "peers", "--only", "flwr"])
    assert result.exit_code == 2
    assert "only = 'flwr': must be one of pushcen, pushcen-compressed, flower, gossipy" in result.stderr.replace(
        "\n", " "
    )


def test_other_environments_train_the_same_lenet():
    spec = importlib.util.spec_from_file_location("work", beside.SCRIPTS / "work.py")
    work = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(work)
    copied, original = work.lenet(), LeNet(10)
    original.load_state_dict(dict(zip(original.state_dict(), copied.state_dict().values(), strict=True)))
    assert torch.equal(copied(work.IMAGES), original(work.IMAGES))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pushcen", "pushcen-compressed"])
def test_pushcens_own_row_is_measured(name):
    command = ["bench", "peers", "--only", name, "--clients", "8", "--rounds", "2", "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    [own] = json.loads(result.stdout)["peers"].values()
    assert own["updates"] == 16
    assert own["bare_wall"] > 0
    assert own["wall"] > 0
    assert 100 < own["bare_peak"] < own["peak"] < 2000
    assert own["start_seconds"] > 0
    assert own["versions"].keys() == {"pushcen", "torch"}
