"""Models that rest share their empty places for hooks, and nobody who works with one can tell."""

import copy
import pickle
import sys
from collections import OrderedDict
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from pushcen.learning.resting import awake, rest
from pushcen.simulation.executors import Host, MakeLearner
from pushcen.simulation.jobs import Build, Job
from tests.simulation import worlds
from tests.simulation.worlds import world

REGISTER = {
    "register_forward_hook": {},
    "register_forward_pre_hook": {"with_kwargs": True},
    "register_full_backward_hook": {},
    "register_full_backward_pre_hook": {},
    "register_state_dict_post_hook": {},
    "register_state_dict_pre_hook": {},
    "register_load_state_dict_pre_hook": {},
    "register_load_state_dict_post_hook": {},
}


@dataclass(frozen=True)
class Look(Job):
    """Hands the model of a learner to a function."""

    function: object

    def run(self, host, client, inputs):
        return self.function(host.learners[client].model), None


def hosted(function=worlds.task, clients=3):
    options = world(clients=clients)
    host = Host(MakeLearner(function, options.method, options.training, clients, options.seed))
    for client in range(clients):
        host.run(client, [Build()], [])
    return host


def own_bytes(model):
    """Count the containers that belong to one model's modules alone."""
    found = {id(one): sys.getsizeof(one) for module in model.modules() for one in vars(module).values()}
    return sum(found.values())


@pytest.mark.parametrize("method", REGISTER)
def test_a_hook_that_is_registered_in_a_job_is_its_clients_own_and_lasts(method):
    host = hosted()
    host.run(1, [Look(lambda model: getattr(model, method)(lambda *_: None, **REGISTER[method]))], [])

    def hooks(model):
        return sum(len(one) for one in vars(model).values() if isinstance(one, OrderedDict))

    counts = [host.run(client, [Look(hooks)], [])[0] for client in range(3)]
    assert counts[1] >= 1
    assert counts[0] == counts[2] == 0


@pytest.mark.parametrize("method", REGISTER)
def test_a_model_that_rests_says_where_hooks_can_be_registered(method):
    host = hosted()
    with pytest.raises(RuntimeError, match=r"rests.*task function.*fit"):
        getattr(host.learners[0].model, method)(lambda *_: None)


def test_hooks_of_the_task_function_fire_in_every_event_and_evaluation():
    seen = []

    def task(client, clients):
        made = worlds.task(client, clients)
        made.model.register_forward_hook(lambda *_: seen.append(client))
        return made

    worlds.run(clients=3, function=task, horizon=2.0)
    assert set(seen) == {0, 1, 2}


def test_a_model_that_registers_and_removes_a_hook_in_each_forward_pass_trains():
    class Hooked(nn.Linear):
        def forward(self, x):
            handle = self.register_forward_hook(lambda *_: None)
            self.register_buffer("newest", torch.zeros(1), persistent=False)
            try:
                return super().forward(x)
            finally:
                handle.remove()

    def task(client, clients):
        made = worlds.task(client, clients)
        made.model = Hooked(6, 2)
        return made

    assert worlds.run(clients=3, function=task, horizon=2.0)["steps"] > 0


def test_a_copy_of_a_model_that_rests_does_so_until_it_is_awake():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    rest(model)
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(RuntimeError, match="rests"):
            made.register_forward_hook(print)
        fired = []
        with awake(made):
            made.register_forward_hook(lambda *_, fired=fired: fired.append(1))
            made(torch.ones(1, 2))
        assert fired == [1]


def test_a_model_that_rests_computes_saves_and_loads_as_before():
    model, inputs = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), torch.randn(4, 2)
    expected, state = model.eval()(inputs), copy.deepcopy(model.state_dict())
    rest(model)
    assert torch.equal(model(inputs), expected)
    assert all(torch.equal(one, state[name]) for name, one in model.state_dict().items())
    model.load_state_dict(state)
    model(inputs).sum().backward()


def test_a_model_that_rests_takes_half_the_memory_for_its_modules():
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    before = own_bytes(model)
    rest(model)
    assert own_bytes(model) < before / 2
    with awake(model):
        assert own_bytes(model) == before
    assert own_bytes(model) < before / 2
