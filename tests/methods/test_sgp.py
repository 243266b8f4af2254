"""SGP: numerators and masses of the paper's Algorithm 1, recomputed with plain numpy; the overlap variant, too."""

from random import Random

import numpy as np
import pytest
import torch

from pushcen.errors import OptionError
from pushcen.learning import TrainingOptions, Work
from pushcen.methods import PushSum, Sgp
from pushcen.protocol import UNIT
from tests.learning.tasks import tiny_learner
from tests.methods.softmax import client_of, displacement, event, numbers, start
from tests.simulation.worlds import norm_task, run


class Numerators:
    """The algorithm: x and y of all clients, and of all messages that wait."""

    def __init__(self, clients, overlap):
        self.x = {i: start() for i in range(clients)}
        self.y = dict.fromkeys(range(clients), 1.0)
        self.waiting = {i: [] for i in range(clients)}
        self.overlap = overlap

    def event(self, i, receivers):
        before = self.x[i] / self.y[i]
        for x, y in self.waiting[i]:
            self.x[i], self.y[i] = self.x[i] + x, self.y[i] + y
        self.waiting[i] = []
        self.x[i] = self.x[i] + displacement(before if self.overlap else self.x[i] / self.y[i], i)
        for name in ("x", "y"):
            getattr(self, name)[i] = getattr(self, name)[i] / (len(receivers) + 1)
        for j in receivers:
            self.waiting[j].append((self.x[i], self.y[i]))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("receivers", "limit"), [(1, 16), (2, 16), (2, 1)], ids=["one", "two", "two, merged early"])
def test_models_are_the_papers_numerators_over_masses(overlap, receivers, limit):
    method, draw = Sgp(receivers=receivers, overlap=overlap, limit=limit), Random(3)
    clients = [client_of(i, method) for i in range(6)]
    plain = Numerators(6, overlap)
    for _ in range(60):
        i = draw.randrange(6)
        chosen = draw.sample([j for j in range(6) if j != i], receivers)
        plain.event(i, chosen)
        for j, envelope in event(clients[i], [clients[j] for j in chosen]).items():
            clients[j].receive(envelope)
        np.testing.assert_allclose(numbers(clients[i]), plain.x[i] / plain.y[i], atol=2e-4)
        assert clients[i].peer.held / UNIT == pytest.approx(plain.y[i])
    assert max(plain.y.values()) > 2 * min(plain.y.values()), "masses differ, so that it matters what a step acts on"
    assert sum(one.peer.held + one.peer.waiting for one in clients) == 6 * UNIT


def test_push_sum_moves_the_model_where_sgp_moves_the_numerator():
    models = {}
    for method in (PushSum(receivers=1, full_after=0), Sgp()):
        one = client_of(0, method)
        event(one, [client_of(1, method)])  # half of the mass is left
        before = numbers(one)
        event(one, [])
        models[method.name] = (numbers(one) - before) / displacement(before, 0)
    np.testing.assert_allclose(models["push-sum"], 1, atol=1e-3)
    np.testing.assert_allclose(models["sgp"], 2, atol=1e-3)


@pytest.mark.parametrize("overlap", [False, True])
def test_statistics_of_batch_norm_are_not_divided_by_the_mass(overlap):
    """A variance that moved by a multiple of its change could become negative."""

    def variance(own):
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
        with torch.no_grad():
            for number, tensor in enumerate([*model.parameters(), *model.buffers()]):
                tensor.copy_(torch.linspace(0.1, 1, tensor.numel()).view(tensor.shape) + number)
        training = TrainingOptions(batch=8, batch_norm="shared")
        learner = tiny_learner(Sgp(overlap=overlap), model=model, training=training)
        learner.step(Work(own, []))
        return learner.model[1].running_var.clone(), learner.model[0].weight.clone()

    (one, weights), (little, farther) = variance(UNIT), variance(UNIT // 10)
    assert torch.allclose(one, little, atol=1e-5)
    assert not torch.allclose(weights, farther)


def test_an_event_that_fails_leaves_the_model_as_it_was():
    one = client_of(0, Sgp(overlap=True))
    before = numbers(one)
    one.learner.task.train[0][:] = float("nan")
    outcome = one.learner.attempt(one.begin())
    assert outcome.failure
    np.testing.assert_array_equal(numbers(one), before)


@pytest.mark.parametrize("options", [{}, {"overlap": True, "newest_only": True, "codec": "centroids"}])
def test_it_runs_in_a_world_with_loss_and_late_clients_and_keeps_all_mass(options):
    from pushcen.simulation import NetworkOptions, ParticipationOptions

    summary = run(
        method=Sgp(**options),
        horizon=3.0,
        network=NetworkOptions(loss=0.2, latency=0.1, notice="doubt"),
        participation=ParticipationOptions(delayed=0.25, earliest=0.5, latest=1),
        function=norm_task,
    )
    assert summary["status"] == "finished"
    assert summary["meters"]["mass"]["exact"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"receivers": 0}, "receivers = 0"), ({"overlap": 1}, "overlap = 1"), ({"codec": "fragment"}, "codec")],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Sgp(**options)
