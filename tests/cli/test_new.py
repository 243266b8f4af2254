"""What `pushcen new` writes works at once."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.starters import KINDS


def commands(folder):
    """The commands of its README, without what is said of each."""
    return [
        line.partition("#")[0].split() for line in (folder / "README.md").read_text().splitlines() if line[:4] == "    "
    ]


def run(folder, command):
    python = {"python": [sys.executable], "pushcen": [sys.executable, "-m", "pushcen"]}[command[0]]
    done = subprocess.run(
        [*python, *command[1:]],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=KINDS)
def starter(request, tmp_path):
    result = CliRunner().invoke(app, ["new", str(tmp_path / "wards"), "--kind", request.param])
    assert result.exit_code == 0, result.output
    assert "test_task.py" in result.output
    return tmp_path / "wards"


def test_its_test_passes_and_its_clients_train(starter):
    test, simulate, up = commands(starter)
    assert run(starter, test) == "2 tests passed\n"
    shown = run(starter, [*simulate, "--horizon", "2"])
    assert "PushCen" in shown
    assert "accuracy" in shown
    assert up[:3] == ["pushcen", "up", "config.toml"]
    assert (starter / "README.md").read_text().startswith("# wards\n")


@pytest.mark.slow
def test_its_network_of_processes_trains(starter):
    assert "every quantum" in run(starter, commands(starter)[2])


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    result = CliRunner().invoke(app, ["new", str(tmp_path)])
    assert result.exit_code == 2
    assert "is there already, and not empty" in result.output
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_kind_is_refused_by_name(tmp_path):
    result = CliRunner().invoke(app, ["new", str(tmp_path / "wards"), "--kind", "sounds"])
    assert result.exit_code == 2
    assert "kind = 'sounds': must be one of images, table, text, own" in result.output
    assert not (tmp_path / "wards").exists()
