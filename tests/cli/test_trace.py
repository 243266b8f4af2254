"""`pushcen data trace`, and a run in the world that it makes, with units in flags."""

import json

from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.runs import Run


def pushcen(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_trace_is_made_and_run(tmp_path):
    file = tmp_path / "night.json"
    result = pushcen("data", "trace", file, "--clients", 6, "--days", 1, "--seed", 3, "--zones", "0,8")
    assert result.exit_code == 0, result.output
    assert "6 devices, 1 days; online" in result.output
    first = file.read_bytes()
    pushcen("data", "trace", file, "--clients", 6, "--days", 1, "--seed", 3, "--zones", "0,8")
    assert file.read_bytes() == first
    assert len(json.loads(first)) == 6
    options = ["--set", "time_unit=2 h", "--set", f"participation.trace={file}", "--horizon", "4 h", "--clients", 4]
    result = pushcen(
        "simulate", "--task", "tests.simulation.worlds:task", *options, "--runs", tmp_path, "--name", "run",
        "--set", "evaluation.every=1 h", "--set", "participation.delayed=0",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    done = Run.open(tmp_path / "run")
    assert (done.config["horizon"], done.config["evaluation"]["every"], len(done.rows)) == (2.0, 0.5, 4)
    assert done.summary["meters"]["mass"]["exact"]


def test_what_is_wrong_is_told_in_one_line(tmp_path):
    for arguments, complaint in (
        (("data", "trace", tmp_path / "no" / "t.json"), "there is no folder"),
        (("data", "trace", tmp_path / "t.json", "--online", "1,2"), "must be 24 shares"),
        (("data", "trace", tmp_path / "t.json", "--zones", "east"), "zones = 'east': must be numbers"),
        (("data", "trace", tmp_path / "t.json", "--clients", 0), "clients = 0"),
        (("simulate", "--horizon", "2 h"), "horizon = '2 h': needs time_unit"),
        (("simulate", "--horizon", "soon"), "horizon = 'soon': must be a number, or a time such as '200 ms'"),
    ):
        result = pushcen(*arguments)
        assert result.exit_code == 2
        assert complaint in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())
