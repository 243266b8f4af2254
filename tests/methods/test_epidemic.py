"""Epidemic Learning: the mean of itself and whoever has sent, recomputed; receivers drawn anew, never a graph."""

from random import Random

import numpy as np
import pytest
import torch

from pushcen.client import Client
from pushcen.config import Config
from pushcen.errors import OptionError
from pushcen.folder import METRICS
from pushcen.learning import Learner, Task, TrainingOptions, Work
from pushcen.methods import AsyncDFedAvg, Epidemic, Place
from pushcen.protocol import UNIT, Peer, name_of
from pushcen.simulation import EvaluationOptions, NeighbourOptions
from tests.learning.tasks import tiny_data, tiny_model
from tests.simulation.worlds import plain, run


def numbers(client):
    return torch.cat([p.detach().flatten() for p in client.learner.model.parameters()]).double().numpy()


def client_of(name, method):
    training = TrainingOptions(batch=8, lr=1e-2)
    learner = Learner(Task(tiny_model(), tiny_data(int(name))), method.update(), training, client=name, seed=int(name))
    return Client(Peer.found(name, method.rules(Place(name))), learner, Random(name))


def test_a_client_takes_the_mean_of_itself_and_of_the_newest_of_everybody_who_sent():
    method, draw = Epidemic(receivers=3), Random(5)
    everybody = {str(number): client_of(str(number), method) for number in range(25)}
    waiting = {name: {} for name in everybody}
    most = 0
    for _ in range(60):
        name = draw.choice([*everybody])
        one = everybody[name]
        own, work = numbers(one), one.begin()
        one.learner._merge(work)
        expected = np.mean([own, *waiting[name].values()], axis=0)
        np.testing.assert_allclose(numbers(one), expected, atol=1e-6)
        most = max(most, len(waiting[name]))
        waiting[name] = {}
        outcome = one.step(Work(UNIT, []))
        others = [other for other in everybody if other != name]
        chosen = one.peer.rules.outbox.choose(lambda k, among=others: draw.sample(among, k))
        assert len(chosen) == 3
        for envelope in one.finish([everybody[other].peer.contact for other, _ in chosen], outcome.payloads):
            everybody[name_of(envelope.receiver)].receive(envelope)
            waiting[name_of(envelope.receiver)][name] = numbers(one)
    assert most > 3


def test_there_is_no_bound_to_how_many_count():
    method = Epidemic()
    one, sent = client_of("0", method), []
    for number in range(1, 40):
        other = client_of(str(number), method)
        [envelope] = other.finish([one.peer.contact], other.step(other.begin()).payloads)
        one.receive(envelope)
        sent.append(numbers(other))
    own, work = numbers(one), one.begin()
    assert len(work.models) == 39
    one.learner._merge(work)
    np.testing.assert_allclose(numbers(one), np.mean([own, *sent], axis=0), atol=1e-6)


def test_where_nothing_is_bounded_it_is_async_dfedavg_number_for_number(tmp_path):
    both = {"horizon": 4.0, "evaluation": EvaluationOptions(every=1.0, reference=True)}
    one = run(tmp_path / "one", method=Epidemic(receivers=3), **both)
    other = run(tmp_path / "other", method=AsyncDFedAvg(receivers=3, limit=0), **both)
    assert plain(one) == {**plain(other), "method": "epidemic"}
    assert (tmp_path / "one" / METRICS).read_bytes() == (tmp_path / "other" / METRICS).read_bytes()


def test_every_push_is_a_dense_model_for_each_of_its_receivers():
    summary = run(method=Epidemic(receivers=2), horizon=3.0)
    traffic = summary["traffic"]
    assert traffic["messages_sent"] == 2 * summary["steps"]
    assert traffic["bytes_sent"] == traffic["messages_sent"] * (56 + 4 * (6 * 8 + 8 + 8 * 2 + 2))


def test_a_fixed_graph_and_no_receivers_are_refused_before_anything_runs():
    refused = "neighbours.kind = 'graph': epidemic draws its receivers anew; must be random or view"
    with pytest.raises(OptionError, match=refused):
        run(method=Epidemic(), neighbours=NeighbourOptions(kind="graph"))
    with pytest.raises(OptionError, match=refused):
        Config.of({"method": "epidemic", "neighbours": {"kind": "graph"}})
    with pytest.raises(OptionError, match="receivers = 0"):
        Epidemic(receivers=0)
