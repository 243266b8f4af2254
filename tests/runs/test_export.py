"""An exported model has what trains, and says on which frozen part it stands."""

import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.learning import Learner

TASK = """
import torch
from pushcen.learning import Task
def tuned(client, clients):
    inputs = torch.randn(40, 6, generator=torch.Generator().manual_seed(client))
    targets = (inputs.sum(1) > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 6), torch.nn.Linear(6, 2))
    model[1].weight = model[0].weight  # tied
    model[:2].requires_grad_(False)
    return Task(model, (inputs[:32], targets[:32]), (inputs[32:], targets[32:]))
def tied(client, clients):
    task = tuned(client, clients)
    task.model.requires_grad_(True)
    return task
"""


def pushcen(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "tuned_task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    small = ["--clients", 3, "--horizon", 1, "--workers", 1, "--runs", tmp_path]
    for name in ("tuned", "tied"):
        pushcen("simulate", "--task", f"tuned_task:{name}", *small, "--name", name)
    yield tmp_path
    sys.modules.pop("tuned_task", None)


def base_in(file):
    with safe_open(file, "pt") as opened:
        return (opened.metadata() or {}).get("base")


def executed(said):
    names = {}
    exec(said.split("\n", 1)[1], names)
    return names["model"]


@pytest.mark.parametrize("which", [["--client", 1], ["--reference"]])
def test_what_is_frozen_stays_out_and_the_file_and_the_command_name_it(folder, which):
    file = folder / "model.safetensors"
    said = pushcen("export", folder / "tuned", *which, "--out", file)
    assert set(load_file(file)) == {"2.weight", "2.bias"}
    assert len(base_in(file)) == 32
    assert f"# without what is frozen: base {base_in(file)}" in said
    model = executed(said)
    from tuned_task import tuned

    task = tuned(1, 3)
    task.model = model
    assert Learner(task).frozen.base == base_in(file)
    whole = folder / "whole.safetensors"
    said = pushcen("export", folder / "tuned", *which, "--out", whole, "--whole")
    assert base_in(whole) is None
    assert "# without" not in said
    state = executed(said).state_dict()
    assert load_file(whole).keys() == state.keys()
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in state.items())
    assert all(torch.equal(tensor, state[name]) for name, tensor in load_file(file).items())


@pytest.mark.parametrize("which", [["--client", 1], ["--reference"]])
def test_tied_weights_that_train_are_exported_and_loaded(folder, which):
    said = pushcen("export", folder / "tied", *which)
    model = executed(said)
    assert model[0].weight is model[1].weight


@pytest.mark.parametrize("name", ["tuned", "tied"])
def test_a_task_in_a_file_is_loaded_from_it(folder, name):
    small = ["--clients", 3, "--horizon", 1, "--workers", 1, "--runs", folder, "--name", "by-file"]
    pushcen("simulate", "--task", f"tuned_task.py:{name}", *small)
    said = pushcen("export", folder / "by-file", "--client", 0)
    model = executed(said)
    for key, tensor in load_file(folder / "by-file" / "model-0.safetensors").items():
        assert torch.equal(model.state_dict()[key], tensor)
