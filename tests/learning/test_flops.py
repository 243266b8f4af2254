"""Operations: counted for training, by formula for the rest; each against a sum done by hand."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Work
from pushcen.learning import flops as counter
from pushcen.models import LeNet, resnet18
from tests.learning.tasks import tiny_data, tiny_learner, tiny_model


@pytest.fixture(autouse=True)
def _fresh():
    """Let every test count by itself."""
    counter._known.clear()


def mlp_step(batch, inputs=6, hidden=8, classes=4):
    """Two per weight and sample, forward and for the weights' gradients; for the inputs' from the second layer on."""
    first, second = 2 * batch * inputs * hidden, 2 * batch * hidden * classes
    return 2 * first + 3 * second


@pytest.mark.parametrize(("samples", "epochs", "batches"), [(20, 2, [8] * 4), (64, 1, [8] * 8), (5, 3, [5] * 3)])
def test_training_of_a_perceptron_is_counted_as_by_hand(samples, epochs, batches):
    training = TrainingOptions(epochs=epochs, batch=8)
    learner = tiny_learner("independent", data=tiny_data(samples=samples), training=training)
    for _ in range(2):  # the second event is not counted again, and costs the same
        assert learner.step(Work(1, [])).flops == sum(map(mlp_step, batches))


def test_training_of_a_convolution_is_counted_as_by_hand():
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.Flatten(), nn.Linear(5 * 4 * 4, 2))
    data = torch.randn(7, 3, 6, 6), torch.randint(2, (7,))
    outcome = Learner(Task(model, data), None, TrainingOptions(batch=7)).step(Work(1, []))
    convolution, linear = 2 * 7 * (4 * 4 * 5) * (3 * 3 * 3), 2 * 7 * 80 * 2
    assert outcome.flops == 2 * convolution + 3 * linear


def test_models_that_print_alike_are_counted_apart():
    class Bare(nn.Module):
        def __init__(self, hidden):
            super().__init__()
            self.first, self.second = nn.Parameter(torch.randn(6, hidden)), nn.Parameter(torch.randn(hidden, 4))

        def forward(self, x):
            return (x @ self.first).tanh() @ self.second

    assert repr(Bare(3)) == repr(Bare(30))
    for hidden in (3, 30):
        outcome = Learner(Task(Bare(hidden), tiny_data()), None, TrainingOptions(batch=20)).step(Work(1, []))
        assert outcome.flops == mlp_step(20, hidden=hidden)


def test_merging_costs_a_multiplication_and_an_addition_for_each_weight_and_model():
    learner = tiny_learner("push-sum", training=TrainingOptions(batch=20))
    alone = learner.step(Work(1, [])).flops
    sent = [tiny_learner("push-sum", seed).encode() for seed in (1, 2, 3)]
    merged = learner.step(Work(1, [Model(1, 0, one) for one in sent])).flops
    assert merged - alone == 2 * learner.schema.size * (3 + 1)


class Tally:
    """A number that counts what is done with it."""

    done = 0

    def __init__(self, value):
        self.value = value

    def _count(self, value):
        Tally.done += 1
        return value

    def __sub__(self, other):
        return Tally(self._count(self.value - other.value))

    def __add__(self, other):
        return Tally(self._count(self.value + other.value))

    def __mul__(self, other):
        return Tally(self._count(self.value * other.value))

    def __lt__(self, other):
        return self._count(abs(self.value) < abs(other.value))


def assign(weights, centroids):
    """Nearest centroids by distances and comparisons, as in Algorithm 4, line 10."""
    for weight in weights:
        best = Tally(float("inf"))
        for centroid in centroids:
            distance = weight - centroid
            if distance < best:
                best = distance


def histogram_and_assign(weights, knee, threshold):
    """What one weight costs by histogram: its bin's number, the bin's count and sum, one comparison for its index."""
    count, total = Tally(0), Tally(0)
    for weight in weights:
        _bin = weight + knee
        count = count + Tally(1)
        total = total + weight
        _index = weight < threshold


def tallied(work, *arguments):
    Tally.done = 0
    work(*arguments)
    return Tally.done


WEIGHTS = [Tally(float(x)) for x in torch.randn(80, generator=torch.Generator().manual_seed(0))]


@pytest.mark.parametrize("clusters", [4, 32])
def test_the_papers_clustering_is_three_assignments_to_every_centroid(clusters):
    update = _prepared(CentroidUpdate(clusters, strength=0, mask=False, profile="paper", feedback=False))
    centroids = [Tally(float(i)) for i in range(clusters)]
    assert update.flops(steps=10) == 3 * tallied(assign, WEIGHTS, centroids)


def test_clustering_by_histogram_is_four_operations_a_weight():
    update = _prepared(CentroidUpdate(32, strength=0, mask=False, feedback=False))
    assert update.flops(steps=10) == tallied(histogram_and_assign, WEIGHTS, Tally(1.0), Tally(0.5))


@pytest.mark.parametrize(
    ("options", "each", "clusterings"),
    [({}, 3 + 1, 2), ({"strength": 0}, 1, 2), ({"mask": False}, 3, 2), ({"strength": 0, "mask": False}, 0, 1)],
)
def test_each_step_adds_what_regulariser_and_mask_cost(options, each, clusterings):
    update = _prepared(CentroidUpdate(8, **options))
    assert update.flops(0) == (clusterings * 4 + 2) * 80
    assert update.flops(25) - update.flops(0) == 25 * each * 80


def test_an_events_operations_are_the_sum_of_its_parts():
    learner = tiny_learner(clusters=8, training=TrainingOptions(batch=20))
    assert learner.step(Work(1, [])).flops == mlp_step(20) + learner.update.flops(1)
    sent = tiny_learner(seed=1, clusters=8).encode()
    expected = mlp_step(20) + learner.update.flops(1) + 2 * 2 * learner.schema.size
    assert learner.step(Work(1, [Model(1, 0, sent)])).flops == expected


def _prepared(update):
    Learner(Task(tiny_model(), tiny_data()), update)  # 48 + 32 clustered weights
    return update


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), nn.Linear(16, 2)

    def forward(self, inputs):
        return self.out(self.inner(inputs).mean(1))


@pytest.mark.parametrize(
    ("model", "inputs"),
    [(LeNet(10), (4, 3, 32, 32)), (resnet18(10), (2, 3, 32, 32)), (Attention(), (3, 5, 16))],
    ids=["lenet", "resnet18", "attention"],
)
def test_the_count_is_that_of_torchs_own_counter(model, inputs):
    given = torch.randn(inputs)

    def step():
        return model(given).sum().backward()

    with FlopCounterMode(display=False) as torchs:
        step()
    cost = counter.StepCost(model)
    cost.run(0, step)
    assert cost.total == torchs.get_total_flops() > 0
