"""What is frozen is held once for all simulated clients of a process, and is in no checkpoint."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open

from pushcen.errors import LearningError, ModelError
from pushcen.learning.frozen import Frozen
from pushcen.simulation.executors import Host, MakeLearner
from pushcen.simulation.jobs import Build
from tests.simulation import worlds
from tests.simulation.test_determinism import EVERYTHING, Stops, files
from tests.simulation.worlds import run, world


def tuned(client, clients):
    """A backbone that does not train, with a BatchNorm and a table in it, and a head that does."""
    made = worlds.task(client, clients)
    backbone = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.BatchNorm1d(40), torch.nn.ReLU())
    backbone[0].register_buffer("table", torch.rand(1500))
    made.model = torch.nn.Sequential(backbone.requires_grad_(False), torch.nn.Linear(40, 2))
    return made


def hosted(function=tuned, clients=4):
    options = world(clients=clients)
    host = Host(MakeLearner(function, options.method, options.training, clients, options.seed))
    return [host.build(client) for client in range(clients)]


def places(learners, name):
    return {learner.model.state_dict()[name].data_ptr() for learner in learners}


def test_what_is_frozen_is_in_one_place_and_all_else_in_as_many_as_there_are_clients():
    learners = hosted()
    for name in learners[0].model.state_dict():
        together = name in ("0.0.weight", "0.0.bias", "0.0.table", "0.1.weight", "0.1.bias")
        assert len(places(learners, name)) == (1 if together else 4), name


def test_an_actor_of_a_cluster_holds_it_once():
    cluster = pytest.importorskip("pushcen.simulation.executors.cluster")
    options = world(clients=3)
    worker = cluster.Worker(
        [], cluster.ray.cloudpickle.dumps((MakeLearner(tuned, options.method, options.training, 3, 0), None)), False
    )
    for client in range(3):
        worker.run(client, [Build()], 0)
    assert len(places(worker._host.learners.values(), "0.0.weight")) == 1


def test_sharing_changes_no_byte_on_any_number_of_threads(tmp_path, monkeypatch):
    options = {**EVERYTHING, "horizon": 3.0, "function": tuned}
    for workers in (1, 3):
        run(tmp_path / str(workers), workers=workers, **options)
    monkeypatch.setattr(Frozen, "share", lambda self, held: None)
    run(tmp_path / "apart", workers=3, **options)
    assert files(tmp_path / "1") == files(tmp_path / "3") == files(tmp_path / "apart")


def names_in_checkpoint(folder):
    [checkpoint] = [path for path in (folder / "checkpoint").iterdir() if path.is_dir()]
    with safe_open(checkpoint / "learners-0.safetensors", "pt") as file:
        return {name.partition("/")[2] for name in file.keys()}  # noqa: SIM118


def interrupted(folder, options, function=tuned):
    assert run(folder, function, observer=Stops(2), **options)["status"] == "interrupted"


def test_an_interrupted_run_goes_on_from_a_checkpoint_without_the_frozen_part(tmp_path):
    options = {**EVERYTHING, "horizon": 4.0}
    run(tmp_path / "straight", tuned, **options)
    interrupted(tmp_path / "broken", options)
    found = names_in_checkpoint(tmp_path / "broken")
    assert {"model.1.weight", "model.0.1.running_mean"} <= found
    assert not found & {"model.0.0.weight", "model.0.0.bias", "model.0.0.table", "model.0.1.weight"}
    run(tmp_path / "broken", tuned, resume=True, **options)
    assert files(tmp_path / "broken") == files(tmp_path / "straight")


def test_a_checkpoint_of_an_earlier_version_that_has_the_frozen_part_is_gone_on_with(tmp_path, monkeypatch):
    options = {"horizon": 4.0}
    run(tmp_path / "straight", tuned, **options)
    with monkeypatch.context() as earlier:
        earlier.setattr(Frozen, "without_fixed", lambda self, state: dict(state))
        earlier.setattr(Frozen, "base", "")
        interrupted(tmp_path / "broken", options)
    assert "model.0.0.weight" in names_in_checkpoint(tmp_path / "broken")
    run(tmp_path / "broken", tuned, resume=True, **options)
    assert files(tmp_path / "broken") == files(tmp_path / "straight")
    assert "model.0.0.weight" not in names_in_checkpoint(tmp_path / "broken")


def changed(client, clients):
    made = tuned(client, clients)
    made.model[0][0].bias.data += 1
    return made


def test_a_run_is_not_gone_on_with_on_another_frozen_part(tmp_path):
    interrupted(tmp_path, {"horizon": 4.0})
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(
        ModelError, match=r"client \d: what was saved stands on the frozen part \w{32}, and the model's"
    ):
        run(tmp_path, changed, resume=True, horizon=4.0)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


class Forgetful(torch.nn.Linear):
    """Scales its weights in place, where it should scale a copy."""

    def forward(self, x):
        if self.training:
            self.weight.mul_(0.9)
        return super().forward(x)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_client_that_writes_into_the_common_part_ends_the_run_by_name(workers):
    def function(client, clients):
        made = worlds.task(client, clients)
        kind = Forgetful if client == 2 else torch.nn.Linear
        made.model = torch.nn.Sequential(kind(6, 8).requires_grad_(False), torch.nn.Linear(8, 2))
        return made

    with pytest.raises(LearningError, match=r"client 2: something wrote into the frozen 0\.weight, which all clients"):
        run(function=function, workers=workers, horizon=2.0)


MEMORY = """
import json, pathlib, torch
from pushcen.learning import Task, TrainingOptions
from pushcen.methods import PushCen
from pushcen.simulation import ExecutorOptions, Quiet, World, simulate_world

def status(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))

class Noted(Quiet):
    def ended(self, summary):
        self.memory = status("VmRSS"), status("VmHWM")

def simulated(clients, width):
    def task(client, clients):
        layers = [torch.nn.Linear(width, width).requires_grad_(False) for _ in range(10)]
        model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))
        return Task(model, (torch.randn(8, width), torch.zeros(8).long()))
    world = World(PushCen(), TrainingOptions(), clients=clients, horizon=1.5, executor=ExecutorOptions(workers=2))
    simulate_world(world, task, observer=(noted := Noted()))
    return noted.memory

simulated(3, 16)
before = status("VmRSS")
print(json.dumps([(bytes - before) / (10 * 4 * 1024 * 1025) for bytes in simulated(8, 1024)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_8_clients_take_the_memory_of_one_backbone_and_while_they_are_built_of_one_more():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    held, peak = json.loads(done.stdout)
    assert held < 1.4, held  # each of two threads would keep what building frees
    assert peak < 2.3, peak


def test_facts_that_clients_have_alike_are_held_once():
    one, other = hosted(clients=2)
    assert one.schema is other.schema
    assert one.frozen.fixed is other.frozen.fixed
    assert one.local.cost._known is other.local.cost._known
    mine, its = (learner.frozen.fingerprints() for learner in (one, other))
    assert mine.keys() == its.keys()
    assert all(mine[name] is its[name] for name in mine)
