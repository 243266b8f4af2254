"""Whatever draws while a client trains draws from the client's own stream, and from no other."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from pushcen.errors import TaskError
from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work, noise
from tests.learning.tasks import tiny_data
from tests.simulation.test_determinism import Stops, files
from tests.simulation.worlds import run

X, Y = tiny_data()


class Rough(nn.Module):
    """Draws in its forward pass."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        return self.draw(x, self.training)


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)

    def forward(self, x):
        return self.layer(x[:, None]).squeeze(1)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(6, 6, 2, dropout=0.5, batch_first=True)

    def forward(self, x):
        return self.layer(x[:, None])[0].squeeze(1)


NOISE = {
    "functional dropout": lambda: Rough(lambda x, training: F.dropout(x, 0.5, training)),
    "added noise": lambda: Rough(lambda x, training: x + torch.randn_like(x) if training else x),
    "noise in place": lambda: Rough(lambda x, training: x + torch.empty_like(x).uniform_() if training else x),
    "a random order": lambda: Rough(lambda x, training: x[torch.randperm(len(x))] if training else x),
    "a distribution": lambda: Rough(lambda x, _: x + torch.distributions.Exponential(1.0).sample(x.shape)),
    "AlphaDropout": lambda: nn.AlphaDropout(0.5),
    "a transformer": Attending,
    "an LSTM": Remembering,
    "a dropout layer, too": lambda: nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.5)),
}


def learner_of(noise, seed=3):
    torch.manual_seed(0)
    model = nn.Sequential(NOISE[noise](), nn.Linear(6, 4))
    return Learner(Task(model, (X, Y)), CentroidUpdate(8), TrainingOptions(batch=8), seed=seed)


@pytest.mark.parametrize("noise", NOISE)
def test_it_depends_on_the_clients_seed_and_on_nothing_else(noise):
    losses = []
    for seed, disturb in ((3, 0), (3, 5), (4, 0)):
        learner = learner_of(noise, seed)
        torch.rand(disturb)
        before = torch.get_rng_state()
        losses.append([learner.step(Work(1, [])).loss for _ in range(2)])
        assert torch.equal(torch.get_rng_state(), before)
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


@pytest.mark.parametrize("noise", NOISE)
def test_a_restored_learner_goes_on_with_it(noise):
    one, middle, other = (learner_of(noise) for _ in range(3))
    one.step(Work(1, []))
    middle.restore(one.save())
    other.restore(middle.save())  # with no event in between
    assert [one.step(Work(1, [])).loss for _ in range(2)] == [other.step(Work(1, [])).loss for _ in range(2)]


class Augmented:
    """Samples that are never the same twice."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, i):
        return self.inputs[i] + torch.randn(3), self.targets[i]


def noisy_task(client, clients):
    inputs = torch.randn(40, 3, generator=torch.Generator().manual_seed(client))
    targets = (inputs.sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(3, 8), Rough(lambda x, training: F.dropout(x, 0.5, training)), nn.Linear(8, 2))
    return Task(model, Augmented(inputs[:32], targets[:32]), (inputs[32:], targets[32:]))


def test_any_number_of_workers_and_any_interruption_gives_the_same_bytes(tmp_path):
    options = {"function": noisy_task, "horizon": 4.0}
    for workers in (1, 4):
        run(tmp_path / str(workers), workers=workers, **options)
    assert run(tmp_path / "parts", observer=Stops(2), **options)["status"] == "interrupted"
    run(tmp_path / "parts", resume=True, **options)
    assert files(tmp_path / "1") == files(tmp_path / "4") == files(tmp_path / "parts")


def test_what_draws_nothing_saves_no_state_and_costs_nothing_after_its_first_event():
    learner = Learner(Task(nn.Linear(6, 4), (X, Y)), training=TrainingOptions(batch=8))
    learner.step(Work(1, []))
    assert "noise" not in learner.save().tensors
    with learner._noise.own():
        before = torch.get_rng_state()
        torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)


def test_only_what_could_draw_is_looked_at(monkeypatch):
    seen, look = [], noise._Own.__torch_function__

    def looking(self, func, *given):
        seen.append(func.__name__)
        return look(self, func, *given)

    monkeypatch.setattr(noise._Own, "__torch_function__", looking)
    model = nn.Sequential(Rough(lambda x, _: F.dropout(x, 0.5)), nn.Linear(6, 4))
    learner = Learner(Task(model, (X, Y)), CentroidUpdate(clusters=4), TrainingOptions(batch=16))
    learner.step(Work(1, []))
    assert seen.count("dropout") == seen.count("backward") == learner.steps
    assert not {"_fused_adam_", "__set__", "numpy"} & set(seen)  # the optimiser's, gradients', the regulariser's


def test_a_step_that_fails_leaves_the_stream_where_it_was():
    learner = Learner(Task(nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten()), (Y[:, None] % 9, Y % 4)))
    with pytest.raises(TaskError, match="event 1, step 1: Adam"):
        learner.step(Work(1, []))
    assert torch.overrides._get_current_function_mode() is None
    with learner._noise.own(), torch.device("cpu"):  # a mode of the user's own stays above the client's
        with noise.unseen():
            drawn = torch.rand(3)
        assert len(torch.overrides._get_current_function_mode_stack()) == 2
    assert torch.equal(drawn, torch.rand(3, generator=Learner(learner.task)._noise.generator))


def test_an_event_that_fails_is_drawn_for_too():
    learner = learner_of("added noise")
    learner.task.loss = lambda outputs, targets: outputs.sum() * torch.nan
    assert learner.attempt(Work(1, [])).failure
    assert "noise" in learner.save().tensors


def test_scripted_modules_can_be_trained():
    model = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5))))
    assert Learner(Task(model, (X, Y)), training=TrainingOptions(batch=8)).step(Work(1, [])).steps == 2
