"""SpaFL: weights and thresholds of a small case recomputed with numpy; what travels, is saved, and is refused."""

from random import Random

import numpy as np
import pytest
import torch
from torch import nn

from pushcen.codec import Dense, decode_row, encode_row
from pushcen.errors import OptionError, TaskError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Work
from pushcen.learning.thresholds import Pruned
from pushcen.methods import SpaFL
from pushcen.protocol import UNIT
from pushcen.runtime.kept import weights_of
from pushcen.runtime.state_folder import read_state
from tests.learning.tasks import tiny_data, tiny_model
from tests.methods.softmax import CLASSES, INPUTS, LR, SAMPLES, client_of, event, samples, start
from tests.runtime.tasks import tiny
from tests.runtime.world import World, until
from tests.runtime.world import run as run_story
from tests.simulation.test_determinism import EVERYTHING, Stops, files
from tests.simulation.worlds import norm_task, run

STRENGTH = 0.9


class Filters:
    """The algorithm, for one linear layer: rows of weights, a bias, and a threshold for each row."""

    def __init__(self, number):
        self.weights, self.bias = start()[: CLASSES * INPUTS].reshape(CLASSES, INPUTS), start()[CLASSES * INPUTS :]
        self.thresholds, self.merged = np.zeros(CLASSES), np.zeros(CLASSES)
        self.inputs, self.labels = samples(number)
        self.waiting, self.restarts = {}, 0

    def kept(self):
        return np.abs(self.weights).mean(1) >= self.thresholds

    def begin_again(self):
        if not self.kept().any():
            self.thresholds, self.restarts = np.zeros(CLASSES), self.restarts + 1

    def merge(self):
        if self.waiting:
            self.thresholds = np.mean([self.thresholds, *self.waiting.values()], axis=0)
            for row in range(CLASSES):
                change = self.thresholds[row] - self.merged[row]
                self.weights[row] -= np.sign(self.weights[row].sum()) * change / INPUTS
            self.merged, self.waiting = self.thresholds, {}
        self.begin_again()

    def train(self):
        used = self.weights * self.kept()[:, None]
        scores = self.inputs @ used.T + self.bias
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(SAMPLES), self.labels] -= 1
        gradient = chances.T @ self.inputs / SAMPLES
        growing = -(gradient * self.weights).sum(1) - STRENGTH * np.exp(-self.thresholds)
        self.weights = self.weights - LR * gradient * self.kept()[:, None]
        self.bias = self.bias - LR * chances.mean(0)
        self.thresholds = self.thresholds - LR * growing
        self.begin_again()


def test_weights_and_thresholds_are_the_papers():
    draw, pruned = Random(5), set()
    clients, book = [client_of(i, SpaFL(strength=STRENGTH)) for i in range(5)], [Filters(i) for i in range(5)]
    for _ in range(220):
        i, chosen = draw.randrange(5), draw.sample(range(5), 2)
        envelopes = event(clients[i], [clients[j] for j in chosen if j != i])
        book[i].merge()
        book[i].train()
        for j, envelope in envelopes.items():
            clients[j].receive(envelope)
            book[j].waiting[i] = book[i].thresholds
        held = dict(clients[i].learner.model.named_parameters())
        np.testing.assert_allclose(held["parametrizations.weight.0.threshold"].detach(), book[i].thresholds, atol=2e-4)
        np.testing.assert_allclose(held["parametrizations.weight.original"].detach(), book[i].weights, atol=2e-4)
        np.testing.assert_allclose(held["bias"].detach(), book[i].bias, atol=2e-4)
        pruned.add(tuple(book[i].kept()))
    assert len(pruned) > 2, "some filter was pruned, and others were not"
    assert sum(one.restarts for one in book) > 0, "nothing was left of a layer"


def test_a_convolution_moves_by_the_change_over_the_area_of_its_kernel():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, (2, 4)), nn.Flatten(), nn.Linear(9, 2))
    before = [tensor.detach().clone() for tensor in (model[0].weight, model[2].weight)]
    learner = Learner(Task(model, (torch.randn(4, 2, 4, 4), torch.tensor([0, 1, 0, 1]))), SpaFL().update())
    message = encode_row(torch.tensor([0.2, -0.4, 0.6, 1.0, -1.0]), Dense(), learner.schema)
    learner._merge(Work(UNIT, [Model(UNIT, 0, {0: message})]))
    expected = before[0].clone()
    for out, change in enumerate((0.1, -0.2, 0.3)):
        sign = 1 if before[0][out].sum() > 0 else -1
        for channel, row, column in np.ndindex(2, 2, 4):
            expected[out, channel, row, column] -= sign * change / 8
    torch.testing.assert_close(learner.update._layers[0].parametrizations.weight.original.detach(), expected)
    moved = learner.update._layers[1].parametrizations.weight.original.detach() - before[1]
    sign = torch.sign(before[1].sum(1, keepdim=True))
    torch.testing.assert_close(moved, -sign * torch.tensor([[0.5], [-0.5]]) / 9 * torch.ones(2, 9))


def test_nothing_travels_but_thresholds():
    learner = Learner(Task(tiny_model(), tiny_data()), SpaFL().update(), TrainingOptions(batch=8))
    payloads = learner.step(Work(UNIT, [])).payloads
    assert len(payloads[0]) == 56 + 4 * (8 + 4) == learner.sizes()[0]
    thresholds = [one.parametrizations.weight[0].threshold.detach() for one in (learner.model[0], learner.model[2])]
    assert torch.equal(decode_row(payloads[0]), torch.cat(thresholds))


def test_a_pruned_filter_gets_no_gradient_and_can_come_back():
    learner = Learner(
        Task(tiny_model(), tiny_data()), SpaFL().update(), TrainingOptions(batch=20, optimiser="sgd", lr=0.1)
    )
    layer = learner.model[0]
    pruning, weight = layer.parametrizations.weight[0], layer.parametrizations.weight.original
    pruning.threshold.data[3] = 5.0
    before = weight.detach().clone()
    assert learner.step(Work(UNIT, [])).density == pytest.approx(1 - 6 / 80)
    assert torch.equal(weight[3], before[3])
    assert not torch.equal(weight[2], before[2])
    assert not layer.weight[3].any()
    pruning.threshold.data[3] = 0.0
    assert torch.equal(layer.weight[3], before[3])


def test_a_filter_whose_mean_is_its_threshold_is_kept_and_so_is_one_of_zeros_at_first():
    weight = torch.tensor([[1.0, -3.0], [1.0, 1.0], [0.0, 0.0]])
    pruned = Pruned(weight)
    pruned.threshold.data[:] = torch.tensor([2.0, 1.0001, 0.0])
    assert pruned(weight).tolist() == [[1.0, -3.0], [0.0, 0.0], [0.0, 0.0]]
    weight.requires_grad_()
    pruned(weight).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


def test_a_layer_with_nothing_left_begins_again():
    learner = Learner(
        Task(tiny_model(), tiny_data()), SpaFL().update(), TrainingOptions(batch=20, optimiser="sgd", lr=1e-3)
    )
    learner.model[0].parametrizations.weight[0].threshold.data.fill_(9.0)
    assert learner.step(Work(UNIT, [])).density == 1
    assert learner.model[0].parametrizations.weight[0].threshold.detach().abs().max() < 0.1


def test_a_layer_of_which_averaging_leaves_nothing_trains_from_the_first_step_on():
    training = TrainingOptions(batch=20, optimiser="sgd", lr=0.1)
    learner = Learner(Task(tiny_model(), tiny_data()), SpaFL().update(), training)
    assert learner.steps == 1
    message = encode_row(torch.full((12,), 4.0), Dense(), learner.schema)
    weight = learner.model[0].parametrizations.weight.original
    before = weight.detach().clone()
    learner.step(Work(UNIT, [Model(UNIT, 0, {0: message})]))
    moved = (weight - before).detach()
    assert float(moved.std(1).min()) > 1e-4  # by a gradient: averaging moves all of a filter alike


def test_an_event_that_fails_leaves_weights_and_thresholds_as_they_were():
    one, other = (client_of(i, SpaFL()) for i in range(2))
    other.receive(event(one, [other])[1])
    before = other.learner.save(whole=False)
    other.learner.task.train[0][:] = float("nan")
    assert other.learner.attempt(other.begin()).failure
    after = other.learner.save(whole=False)
    assert all(torch.equal(tensor, after.tensors[name]) for name, tensor in before.tensors.items())


def test_a_world_where_all_goes_wrong_is_the_same_on_any_number_of_workers_and_resumed(tmp_path):
    options = {**EVERYTHING, "method": SpaFL(receivers=3), "function": norm_task, "horizon": 3.0}
    summary = run(tmp_path / "whole", workers=1, **options)
    assert summary["message_bytes"] == {"0": 56 + 4 * 10}
    assert summary["traffic"]["bytes_sent"] == 96 * summary["traffic"]["messages_sent"] > 0
    run(tmp_path / "parts", workers=2, observer=Stops(2), **options)
    run(tmp_path / "parts", workers=2, resume=True, **options)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def committed(world, name):
    return read_state(world.state(name)).get("learner", {}).get("events", 0)


def test_it_runs_on_a_real_network_and_survives_a_restart(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.3)
        await world.start("p0", "p1", events=6, method=SpaFL(), settings={"start_with": 1})
        await until(lambda: all(committed(world, name) == 6 for name in world.names))
        for node in map(world.node, world.names):
            await until(lambda node=node: node.metrics.received.labels("news")._value.get() > 0)
            assert node.metrics.refusals.labels("payload")._value.get() == 0
        held = world.node("p1").learner.save().tensors
        await world.stop("p1")
        await world.start("p1", method=SpaFL(), live=False)
        again = world.node("p1").learner.save().tensors
        kept = [name for name in held if name.startswith(("model.", "update."))]
        assert [name for name in kept if not torch.equal(held[name], again[name])] == []
        await world.check(founded=0)
        assert set(weights_of(world.state("p0"))) == set(tiny(0, 1).model.state_dict())

    run_story(story())


def test_the_exported_model_is_the_users_own_with_pruned_weights():
    task = Task(tiny_model(), tiny_data(), tiny_data(1))
    learner = Learner(task, SpaFL().update(), TrainingOptions(batch=8))
    learner.step(Work(UNIT, []))
    learner.model[0].parametrizations.weight[0].threshold.data[2] = 9.0
    foreign = {"9.parametrizations.weight.original0": torch.ones(1)}
    assert learner.update.exported(foreign) == foreign
    own = tiny_model(seed=4)
    own.load_state_dict(learner.update.exported(learner.model.state_dict()))
    assert not own[0].weight[2].any()
    assert Learner(Task(own, *[task.train, task.test])).evaluate().loss == learner.evaluate().loss


def frozen():
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
    model[0].requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("model", "options", "training", "message"),
    [
        (nn.Sequential(nn.Flatten(), nn.Bilinear(6, 6, 4)), {}, {}, "client 7: spafl prunes filters of convolutions"),
        (nn.Sequential(nn.LazyLinear(4)), {}, {}, r"client 7: 0\.weight has no shape yet"),
        (frozen(), {}, {}, r"client 7: 0\.weight is frozen, as under an adapter"),
        (tiny_model(), {}, {"batch_norm": "shared"}, "batch_norm = 'shared': spafl sends thresholds and nothing else"),
        (tiny_model(), {"share": lambda name: name == "0.bias"}, {}, "the model must have, and share, one"),
    ],
    ids=["no layer", "lazy", "frozen", "batch_norm", "not shared"],
)
def test_where_it_cannot_live_it_is_refused(model, options, training, message):
    task = Task(model, tiny_data(), **options)
    with pytest.raises((TaskError, OptionError), match=message):
        Learner(task, SpaFL().update(), TrainingOptions(**training), client="client 7")


def test_private_and_tied_layers_are_not_pruned():
    model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    task = Task(model, tiny_data(), share=lambda name: not name.startswith("3."))
    learner = Learner(task, SpaFL().update())
    assert [entry.name for entry in learner.schema.entries] == ["2.parametrizations.weight.0.threshold"]


@pytest.mark.parametrize(
    ("options", "message"), [({"receivers": 0}, "receivers = 0"), ({"strength": -1}, "strength = -1")]
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        SpaFL(**options)
