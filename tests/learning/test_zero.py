"""Layers that start at zero, or come to it, learn like all others; only the paper's own rules hold them there."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from pushcen.codec import Centroids, Schema, cluster, decode, encode
from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Work
from pushcen.methods import AsyncDFedAvg, PushCen
from pushcen.simulation import World, simulate_world
from tests.learning.tasks import digits_of, generator, tiny_learner, tiny_model

TRAINING = TrainingOptions(batch=16, lr=0.01)


def from_zero(classes=10):
    model = nn.Linear(64, classes)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


class Adapted(nn.Module):
    """A layer that does not train, and beside it LoRA's two: the second of them starts at zero."""

    def __init__(self, rank=4):
        super().__init__()
        self.base, self.head = nn.Linear(64, 32), nn.Linear(32, 10)
        self.A, self.B = nn.Linear(64, rank, bias=False), nn.Linear(rank, 32, bias=False)
        nn.init.zeros_(self.B.weight)
        for part in (self.base, self.head):
            part.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.base(x) + 4 * self.B(self.A(x))))


def accuracy(model, method, horizon=8.0):
    def task(client, clients):
        inputs, targets = digits_of(client, clients, 120)
        return Task(model(), (inputs[:80], targets[:80]), (inputs[80:], targets[80:]))

    world = World(method, TRAINING, clients=6, horizon=horizon)
    return simulate_world(world, task)["final"]["accuracy"]


@pytest.mark.parametrize("model", [from_zero, Adapted])
def test_what_starts_at_zero_learns_as_with_dense_averaging(model):
    ours, dense = accuracy(model, PushCen(clusters=16)), accuracy(model, AsyncDFedAvg())
    assert dense > 0.6
    assert ours > dense - 0.1


def learner_of(model, data=None, update=None, training=TRAINING):
    return Learner(Task(model, data or digits_of(0, 2)), update or CentroidUpdate(16), training, seed=3)


def test_the_papers_rules_hold_it_at_zero_and_say_so_once_by_name():
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))
    nn.init.zeros_(model[2].weight)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        learner = learner_of(model, update=CentroidUpdate(16, profile="paper", feedback=False))
        for _ in range(3):
            learner.step(Work(1, []))
    assert not model[2].weight.any()
    [warning] = [str(one.message) for one in seen]
    assert warning.startswith("2.weight: 80 of its 80 weights are zero and stay so")


def test_the_papers_rules_say_so_where_only_some_rows_start_at_zero():
    """New classes beside old ones: they never learn, and the layer does not look empty."""
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))
    with torch.no_grad():
        model[2].weight[:2] = 0
    for profile, told in (("paper", ["2.weight: 16 of its 80 weights are zero and stay so"]), ("default", [])):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            learner = learner_of(copy.deepcopy(model), update=CentroidUpdate(16, profile=profile, feedback=False))
            for _ in range(2):
                learner.step(Work(1, []))
        assert [str(one.message).split(": the paper")[0] for one in seen] == told
        assert learner.model[2].weight[:2].any() == (profile == "default")


def embedding():
    """Tokens of two kinds, of which this client sees the second kind from its second event on."""
    torch.manual_seed(5)
    model = nn.Sequential(nn.Embedding(40, 6), nn.Flatten(), nn.Linear(12, 2))
    nn.init.zeros_(model[0].weight)
    return model


class Later:
    """Samples that change when `late` is set."""

    late = False

    def __init__(self, late=False):
        self.late = late

    def __len__(self):
        return 32

    def __getitem__(self, i):
        token = i % 20 + 20 * self.late
        return torch.tensor([token, (token + 7) % 20 + 20 * self.late]), i % 2


def test_a_row_that_nobody_has_trained_yet_is_not_held_at_zero_when_its_turn_comes():
    samples = Later()
    learner = learner_of(embedding(), samples)
    for _ in range(4):
        learner.step(Work(1, []))
    weight = learner.model[0].weight
    assert not weight[20:].any()
    assert weight[:20].abs().min() < 1  # they have values
    samples.late = True
    learner.step(Work(1, []))
    assert (weight[20:] != 0).float().mean() > 0.9


def test_what_has_just_grown_is_not_pruned_for_being_small():
    """Beside weights near 1, a single step of 0.001 falls into the cell of zero, and would be cut off again."""
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))
    grown = model[2].weight
    with torch.no_grad():
        grown.copy_(torch.randn(grown.shape, generator=generator(1)))
        grown[:, :4] = 0
    learner = learner_of(model, training=TrainingOptions(batch=64, lr=1e-3))
    learner.step(Work(1, []))
    first = grown.detach().clone()
    assert (first[:, :4] != 0).all()
    assert first[:, :4].abs().max() < 0.002
    learner.step(Work(1, []))
    assert (grown[:, :4] != 0).all()
    assert (grown[:, :4].abs() > first[:, :4].abs()).float().mean() > 0.8


def test_once_out_of_the_cell_of_zero_it_is_pruned_like_all_others():
    model = from_zero()
    learner = learner_of(model)
    outcome = learner.step(Work(1, []))
    assert outcome.density == 1.0
    for _ in range(3):
        outcome = learner.step(Work(1, []))
    assert outcome.density < 1.0
    assert outcome.density > 0.5


def test_the_papers_rules_say_so_where_a_layer_dies_later():
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))
    learner = learner_of(model, update=CentroidUpdate(16, profile="paper", feedback=False))
    learner.step(Work(1, []))
    nn.init.zeros_(model[2].weight)
    with pytest.warns(UserWarning, match=r"2.weight: 80 of its 80 weights are zero and stay so"):
        learner.step(Work(1, []))


def test_a_layer_that_dies_lives_again():
    model = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))
    learner = learner_of(model)
    learner.step(Work(1, []))
    with torch.no_grad():
        model[2].weight.zero_()
        model[2].weight[0, 0] = 0.5  # one is left: nearly all are zero
    learner.step(Work(1, []))
    assert (model[2].weight != 0).float().mean() > 0.9


def test_zeros_of_others_do_not_pull_back_what_grows():
    """Neighbours that have no gradient for it send tables of zeros only; the anchor is then the own table."""
    first = from_zero()
    grown, zero = learner_of(copy.deepcopy(first), update=CentroidUpdate(16, strength=0.1)), learner_of(first)
    sent = zero.encode()
    for _ in range(8):
        grown.step(Work(1, [Model(1, 0, sent)]))
    alone = learner_of(from_zero(), update=CentroidUpdate(16, strength=0.1))
    for _ in range(8):
        alone.step(Work(1, []))
    assert grown.model.weight.norm() > 0.1 * alone.model.weight.norm()
    assert (grown.model.weight != 0).float().mean() > 0.5


def test_a_restored_learner_knows_what_is_new():
    learners = [learner_of(embedding(), Later()) for _ in range(2)]
    for one in learners:
        one.step(Work(1, []))
    state = learners[0].save()
    again = learner_of(embedding(), Later(late=True))
    again.restore(state)
    learners[1].task.train.late = True
    for one in (again, learners[1]):
        one.step(Work(1, []))
    assert all(torch.equal(a, b) for a, b in zip(again.model.parameters(), learners[1].model.parameters(), strict=True))
    assert again.model[0].weight[20:].any()


def test_a_model_with_no_zeros_keeps_nothing_more():
    learner = tiny_learner(clusters=8)
    for _ in range(3):
        learner.step(Work(1, []))
    assert not [name for name in learner.save().tensors if "untrained" in name]


def test_who_was_saved_before_there_was_such_a_thing_goes_on():
    learner = learner_of(from_zero())
    state = learner.save()
    old = {name: tensor for name, tensor in state.tensors.items() if "untrained" not in name}
    assert len(old) < len(state.tensors)
    learner.restore(state._replace(tensors=old))
    learner.step(Work(1, []))
    assert learner.model.weight.any()


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("dictionary", [None, torch.zeros(8)], ids=["none", "zeros"])
def test_an_all_zero_tensor_is_encoded_and_leaves_nothing(profile, dictionary):
    model = tiny_model()
    nn.init.zeros_(model[0].weight)
    schema = Schema.of(model)
    left = torch.zeros(schema.size)
    start = {} if dictionary is None else {"0.weight": dictionary}
    payload = encode(model, Centroids(8, profile, start, np.random.default_rng(0), left), schema=schema)
    assert not decode(payload)["0.weight"].any()
    assert not payload.tables()["0.weight"].any()
    assert not left[:48].any()


def test_zeros_say_nothing_of_where_zero_sits():
    assert cluster(torch.zeros(2000), 16, start=torch.zeros(16)).zero_index == 8


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
def test_a_tensor_that_is_mostly_zeros_loses_little(share):
    """Where a sample of the weights sees zeros only, too."""
    weights = torch.randn(20000, generator=generator(3))
    weights[torch.rand(20000, generator=generator(4)) > share] = 0
    found = cluster(weights, 32)
    error = (found.decode() - weights).square().sum() / weights.square().sum()
    assert error < 0.01
    assert found.indices[weights == 0].unique().tolist() == [found.zero_index]
