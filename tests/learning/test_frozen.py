"""What does not train never travels and never changes, and all must have it alike."""

import copy

import pytest
import torch
from torch import nn

from pushcen.errors import LearningError, ModelError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Work
from pushcen.methods import AsyncDFedAvg, DivShare, PushCen, PushSum
from pushcen.runtime.fingerprint import describe, difference, digest
from pushcen.simulation import World, simulate_world
from tests.learning.tasks import digits_of, tiny_data

METHODS = [
    PushCen(clusters=8),
    PushCen(clusters=8, profile="paper", feedback=False),
    PushSum(),
    AsyncDFedAvg(),
    DivShare(),
]


def half_frozen(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 4))
    model[0].requires_grad_(False)
    model[1].requires_grad_(False)
    return model


def learner_of(model, method=METHODS[0], **options):
    training = TrainingOptions(batch=8, lr=0.01, weight_decay=0.1, optimiser="adamw", **options)
    return Learner(Task(model, tiny_data(), tiny_data()), method.update(), training, client="client 7")


@pytest.mark.parametrize("batch_norm", ["local", "shared"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.name} {getattr(method, 'profile', '')}")
def test_nothing_frozen_travels_or_changes(method, batch_norm):
    one, other = (learner_of(half_frozen(), method, batch_norm=batch_norm) for _ in range(2))
    before = {name: p.clone() for name, p in one.model.named_parameters() if not p.requires_grad}
    assert list(before) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert not before.keys() & {entry.name for entry in one.schema.entries}
    for _ in range(4):
        sent = other.step(Work(1, [])).payloads
        one.step(Work(1, [Model(1, part, sent) for part in sent]))
    after = dict(one.model.named_parameters())
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert one.frozen.fingerprints() == other.frozen.fingerprints() == learner_of(half_frozen()).frozen.fingerprints()


def test_what_is_tied_and_frozen_stays_home_under_both_names():
    model = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False), nn.Linear(6, 4))
    model[1].weight = model[0].weight
    model[0].requires_grad_(False)
    learner = learner_of(model)
    assert [entry.name for entry in learner.schema.entries] == ["2.weight", "2.bias"]
    assert list(learner.frozen.fingerprints()) == ["0.weight"]


class Positions(nn.Module):
    """Numbers that are no parameters: some are saved, some are not, one counts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.linspace(0, 1, 6))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        self.calls += 1
        return x + self.places


def positioned(frozen=True):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(Positions(), nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 4))
    model[0].requires_grad_(not frozen)
    return model


@pytest.mark.parametrize("batch_norm", ["local", "shared"])
def test_buffers_of_a_frozen_part_belong_to_it(batch_norm):
    one, other = (learner_of(positioned(), batch_norm=batch_norm) for _ in range(2))
    norm = ["0.2.running_mean", "0.2.running_var"] if batch_norm == "shared" else []  # which change with the data
    assert [entry.name for entry in one.schema.entries] == [*norm, "1.weight", "1.bias"]
    mine, before = about(positioned()), one.model[0][0].places.clone()
    assert {key for key in mine if "0.0" in key} == {"frozen.0.0.places", "frozen.0.0.calls"}
    for _ in range(3):
        one.step(Work(1, [Model(1, 0, other.step(Work(1, [])).payloads)]))
    assert torch.equal(one.model[0][0].places, before)
    changed = positioned()
    changed[0][0].places[0] = 1e-6
    assert difference(mine, about(changed)).startswith("frozen.0.0.places = [6] float32 ")
    assert "0.0.places" in [entry.name for entry in learner_of(positioned(frozen=False)).schema.entries]


def test_a_restored_learner_has_the_same_frozen_part():
    learner, again = learner_of(half_frozen()), learner_of(half_frozen())
    learner.step(Work(1, []))
    again.restore(learner.save())
    for one in (learner, again):
        one.step(Work(1, []))
    assert all(torch.equal(a, b) for a, b in zip(learner.model.parameters(), again.model.parameters(), strict=True))


@pytest.mark.parametrize("model", [nn.Linear(6, 4), nn.BatchNorm1d(6)])
def test_a_model_in_which_nothing_trains_is_refused(model):
    with pytest.raises(LearningError, match="client 7: nothing of the model trains: all its parameters are frozen"):
        learner_of(model.requires_grad_(False))


def test_what_trains_cannot_change_meanwhile():
    for begin, text in ((False, "was frozen when the run began and trains now"), (True, "is frozen now")):
        model = half_frozen()
        model[3].requires_grad_(begin)
        learner = learner_of(model)
        learner.step(Work(1, []))
        model[3].requires_grad_(not begin)
        with pytest.raises(LearningError, match=rf"client 7: 3.weight .*{text}"):
            learner.step(Work(1, []))


def world_of(model):
    def task(client, clients):
        inputs, targets = digits_of(client, clients, 40)
        return Task(model(client), (inputs, targets), (inputs, targets))

    return simulate_world(World(PushCen(clusters=8), TrainingOptions(batch=16), clients=3, horizon=1.0), task)


def backbone(client, other=None):
    model = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 10))
    model[0].requires_grad_(False)
    if client == other:
        with torch.no_grad():
            model[0].bias[3] += 1e-6
    return model


def test_clients_whose_frozen_parts_differ_are_refused_by_the_first_tensor():
    assert world_of(backbone)["parameters"] == 90
    with pytest.raises(ModelError, match=r"client 2: the frozen 0.bias is \[8\] float32 \w{32}, and for others it is"):
        world_of(lambda client: backbone(client, other=2))


def test_clients_that_freeze_different_parts_are_refused():
    def model(client):
        return nn.Sequential(nn.Linear(64, 8).requires_grad_(client != 1), nn.Linear(8, 10))

    with pytest.raises(
        ModelError, match=r"client 1: 0.weight is frozen, and for others it is not: all must freeze the same"
    ):
        world_of(model)


@pytest.mark.parametrize("share", [True, False], ids=["one model", "one layer"])
def test_clients_that_train_the_same_tensors_are_refused(share):
    common = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 10))

    def model(client):
        if share:
            return common
        own = copy.deepcopy(common)
        own[1] = common[1]
        return own

    name = "0.weight" if share else "1.weight"
    with pytest.raises(LearningError, match=rf"client \d: {name} of its model is client \d's own tensor: .*deepcopy"):
        world_of(model)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8, affine=False), nn.BatchNorm1d(8).requires_grad_(False)])
def test_clients_that_gather_the_same_statistics_are_refused(norm):
    with pytest.raises(LearningError, match=r"client 1: 1.running_mean of its model is client 0's own tensor"):
        world_of(lambda _: nn.Sequential(nn.Linear(64, 8), norm, nn.Linear(8, 10)))


class Still(nn.BatchNorm1d):
    def train(self, mode=True):
        return super().train(False)


def test_common_statistics_that_never_change_are_fine():
    norm = Still(8).requires_grad_(False)
    assert world_of(lambda _: nn.Sequential(nn.Linear(64, 8), norm, nn.Linear(8, 10)))["status"] == "finished"
    assert not norm.running_mean.any()


def test_a_common_frozen_part_in_one_place_is_fine():
    common = nn.Linear(64, 8).requires_grad_(False)
    before = common.weight.clone()
    assert world_of(lambda _: nn.Sequential(common, nn.Linear(8, 10)))["status"] == "finished"
    assert torch.equal(before, common.weight)


def about(model):
    learner = learner_of(model)
    return describe(PushCen(), learner.training, learner, 0)


def test_peers_agree_on_what_is_frozen_and_name_what_differs():
    mine, other = about(half_frozen()), half_frozen()
    assert digest(mine) == digest(about(half_frozen()))
    with torch.no_grad():
        other[0].weight[0, 0] += 1
    assert difference(mine, about(other)).startswith("frozen.0.weight = [8, 6] float32 ")
    free = half_frozen().requires_grad_(True)
    assert not [key for key in about(free) if key.startswith("frozen")]
