"""Peers with a frozen part: told apart by the first tensor, whatever the model's size; not in any ledger."""

import asyncio
import time

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import ModelError, NetworkError
from pushcen.learning import Learner, Task, TrainingOptions
from pushcen.learning.frozen import Frozen
from pushcen.methods import PushCen
from pushcen.runtime.fingerprint import describe, difference, digest
from pushcen.runtime.kept import weights_of
from pushcen.runtime.state_folder import read_state
from pushcen.runtime.wire import Hello

from .tasks import tiny
from .world import World, run, until


def deep(change=None, layers=200):
    """400 frozen tensors, of which one may be changed."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(4, 4).requires_grad_(False) for _ in range(layers)), nn.Linear(4, 2))
    if change is not None:
        for name in change:
            model.get_parameter(name).data[0] += 1
    return model


def about(model):
    learner = Learner(Task(model, (torch.zeros(8, 4), torch.zeros(8).long())), PushCen().update())
    return describe(PushCen(), TrainingOptions(), learner, 0)


def test_of_400_frozen_tensors_the_first_of_the_model_that_differs_is_named_first():
    mine, theirs = about(deep()), about(deep(["100.weight", "9.bias", "20.weight"]))
    shuffled = dict(sorted(theirs.items(), key=lambda item: item[1]))  # a message has no order
    text = difference(mine, shuffled)
    assert text.startswith("frozen.9.bias = [4] float32 ")
    assert [part.split(" ")[0] for part in text.split("; ")] == [
        "frozen.9.bias",
        "frozen.20.weight",
        "frozen.100.weight",
    ]
    assert difference(mine, about(deep(layers=3))).endswith(" more")


def test_a_hello_of_400_frozen_tensors_is_small_and_so_is_a_refusal():
    mine = about(deep())
    assert len([key for key in mine if key.startswith("frozen.")]) == 400
    assert len(Hello(run=digest(mine)).SerializeToString()) < 100
    assert len(Hello(run=digest(mine), about=mine).SerializeToString()) < 64_000


def test_the_fingerprint_of_100_megabytes_takes_less_time_than_adding_them_up_a_few_times():
    model = nn.Sequential(*(nn.Linear(1024, 1024).requires_grad_(False) for _ in range(24)), nn.Linear(1024, 2))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        total = sum(float(one.sum()) for one in model.parameters())
        middle = time.perf_counter()
        assert Frozen(model, "p0").base
        times.append((time.perf_counter() - middle) / (middle - begin))
        assert total == total
    assert min(times) < 10


def tuned(client, clients):
    made = tiny(client, clients)
    made.model[0].requires_grad_(False)
    return made


def ranked(client, clients):
    """Client 1 has an adapter of another rank."""
    made = tiny(client, clients)
    rank = 4 if client == 1 else 2
    made.model = nn.Sequential(made.model.requires_grad_(False), nn.Linear(2, rank, bias=False), nn.Linear(rank, 2))
    return made


def test_adapters_of_another_rank_are_refused_with_the_tensor_and_both_shapes_and_nothing_is_trained(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), task=ranked)
        await world.start("p0", join=[])
        with pytest.raises(
            NetworkError, match=r"runs something else: .*schema\.1\.weight = \[2, 2\].* there, \[4, 2\]"
        ):
            await world.start("p1", events=1)
        assert world.node("p0").metrics.received.labels("news")._value.get() == 0
        await world.stop("p0")

    run(story())


def test_a_ledger_has_what_trains_and_the_peer_goes_on_from_it(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), task=tuned)
        await world.start("p0", "p1", events=3, settings={"start_with": 1})
        await until(lambda: all(world.events(name) == 3 for name in world.names))
        await world.stop()
        assert set(weights_of(world.state("p0"))) == {"2.weight", "2.bias"}
        base = read_state(world.state("p0"))["learner"]["frozen"]
        before = weights_of(world.state("p0"))
        [node] = await world.start("p0", live=False)
        assert node.learner.frozen.base == base
        assert all(torch.equal(before[name], node.learner.model.state_dict()[name]) for name in before)
        await world.stop()
        await asyncio.sleep(0)
        result = CliRunner().invoke(app, ["export", str(world.state("p0"))])
        assert f"# without what is frozen: base {base}" in result.output
        assert "strict=False" in result.output
        assert set(load_file(world.state("p0") / "model.safetensors")) == set(before)
        result = CliRunner().invoke(app, ["export", str(world.state("p0")), "--whole"])
        assert result.exit_code == 2

    run(story())


def test_a_ledger_of_an_earlier_version_that_has_the_frozen_part_is_gone_on_with(tmp_path, monkeypatch):
    async def story():
        world = World(tmp_path, names=("p0",), task=tuned)
        with monkeypatch.context() as earlier:
            earlier.setattr(Frozen, "without_fixed", lambda self, state: dict(state))
            earlier.setattr(Frozen, "base", "")
            await world.start("p0", events=2)
            await until(lambda: world.events("p0") == 2)
            await world.stop()
        assert "0.weight" in weights_of(world.state("p0"))
        await world.start("p0", events=4)
        await until(lambda: world.events("p0") == 4)
        await world.stop()
        assert "0.weight" not in weights_of(world.state("p0"))

    run(story())


def test_restoring_by_hand_on_another_frozen_part_is_refused():
    task = tuned(0, 1)
    learner = Learner(task, client="p0")
    state = learner.save()
    other = tuned(0, 1)
    other.model[0].bias.data += 1
    with pytest.raises(ModelError, match="p0: what was saved stands on the frozen part"):
        Learner(other, client="p0").restore(state)
