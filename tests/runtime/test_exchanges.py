"""Exchanges with an answer between real peers: while they train, and when a half is lost, late or never asked for."""

import asyncio
import threading

import pytest
import torch

from pushcen.learning import Task, TrainingOptions
from pushcen.methods import AdPsgd
from pushcen.protocol import ANSWER, name_of
from pushcen.runtime.channels import Channels
from pushcen.runtime.shared import Refusal

from .world import World, run, until

STILL = TrainingOptions(optimiser="sgd", lr=1e-30, momentum=0.0)


def apart(client, clients):
    """Clients that begin with different models; nothing to learn."""
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float(client))
    return Task(model, (torch.randn(16, 4), torch.zeros(16).long()))


def worth(node):
    return node.learner.update.worth().clone()


def count(node, step):
    return int(node.metrics.exchanges.labels(step)._value.get())


def total(world, step):
    return sum(count(world.node(name), step) for name in world.names)


def quiet(world):
    """Whether nothing is under way between those that have had all their events."""
    nodes = [world.node(name) for name in world.names]
    return not any(node.channels._waiting or node.exchanging._tasks for node in nodes)


def test_peers_exchange_learn_and_go_on_after_a_restart(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names, method=AdPsgd(), settings={"start_with": 2})
        await until(lambda: all(count(world.node(name), "completed") > 3 for name in world.names))
        await world.stop("p0")
        [node] = await world.start("p0", method=AdPsgd())
        assert node.peer.boot == 2
        await until(lambda: count(node, "completed") > 2 and count(node, "answered") > 2)
        assert all(world.node(name).metrics.refusals.labels("malformed")._value.get() == 0 for name in world.names)
        await world.check(founded=0)

    run(story())


def test_the_sum_of_all_models_is_kept_and_all_meet_in_the_middle(tmp_path):
    async def story():
        world = World(tmp_path, task=apart)
        patient = {"start_with": 2, "hello_timeout": 60.0}  # on a busy machine nothing is given up
        options = {"method": AdPsgd(), "training": STILL, "settings": patient}
        nodes = await world.start(*world.names, events=25, **options)
        await until(lambda: all(world.events(name) == 25 for name in world.names))
        await until(lambda: quiet(world))
        assert total(world, "asked") >= total(world, "answered") == total(world, "completed") > 10
        models = torch.stack([worth(node) for node in nodes])
        torch.testing.assert_close(models.sum(0), torch.full((15,), 3.0), rtol=0, atol=1e-4)
        assert (models - 1).abs().max() < 0.95  # they began 1 apart from it; how near they come is a matter of time
        await world.stop()

    run(story())


def test_an_answer_that_is_lost_leaves_half_an_exchange(tmp_path, monkeypatch):
    send = Channels.send
    monkeypatch.setattr(Channels, "send", lambda self, some: send(self, [one for one in some if one.part != ANSWER]))

    async def story():
        world = World(tmp_path, names=("p0", "p1"), task=apart)
        nodes = await world.start("p0", "p1", method=AdPsgd(), training=STILL, settings={"start_with": 1})
        await until(lambda: total(world, "answered") > 3)
        assert total(world, "completed") == 0
        models = torch.stack([worth(node) for node in nodes])
        assert not torch.allclose(models, torch.tensor([[0.0], [1.0]]))  # who answered has moved
        assert 0 <= models.min() <= models.max() <= 1
        await world.stop()

    run(story())


def test_a_peer_answers_while_it_trains_and_adds_what_it_trained(tmp_path):
    training, go_on, one = threading.Event(), threading.Event(), TrainingOptions(optimiser="sgd", lr=0.1, momentum=0.0)

    def task(client, clients):
        made = apart(client, clients)
        if client == 0:
            made.fit = slow
        return made

    def slow(learner, batches):
        """Trains one step, in the middle of which others may move the model."""
        training.set()
        assert go_on.wait(120)
        for parameter in learner.model.parameters():
            parameter.grad = torch.full_like(parameter, -20.0)  # a displacement of 2
        learner.optimiser.step()
        return 0.0

    async def story():
        world = World(tmp_path, names=("p0", "p1"), task=task)
        options = {"method": AdPsgd(), "training": one, "settings": {"start_with": 1, "patience": 5.0}}
        [slow_one, quick] = await world.start("p0", "p1", events=0, **options)  # they meet, and train when told to
        await until(lambda: slow_one.members.contact("p1") and quick.members.contact("p0"))
        life = asyncio.create_task(slow_one.trainer.event())
        await until(training.is_set)
        question = quick.learner.update.encode(quick.learner.model)
        quick.peer.begin()
        envelopes = quick.peer.finish([slow_one.peer.contact], question)
        await quick.me.commit()
        quick.trainer.exchanging.asks(envelopes)
        quick.channels.send(envelopes)
        await until(lambda: count(quick, "completed") == 1)  # though the other is in the middle of an event
        torch.testing.assert_close(worth(slow_one), torch.full((15,), 0.5))
        torch.testing.assert_close(worth(quick), torch.full((15,), 0.5))
        go_on.set()
        await life
        await until(lambda: count(quick, "answered") == 1)
        await until(lambda: count(slow_one, "completed") == 1)
        torch.testing.assert_close(worth(slow_one), torch.full((15,), 2.5))  # it asked with 0.5, and got 0.5
        torch.testing.assert_close(worth(quick), torch.full((15,), 0.5))
        await world.stop()

    run(story())


def test_an_answer_that_nobody_asked_for_is_refused_and_moves_nobody(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), task=apart)
        [node, other] = await world.start("p0", "p1", live=False, method=AdPsgd(), training=STILL)
        question = other.learner.encode()
        other.peer.begin()
        [envelope] = other.peer.finish([node.peer.contact], question)
        unasked = envelope._replace(part=ANSWER, sequence=1, payload=None)
        with pytest.raises(Refusal, match="which it was not asked"):
            node.node.check_push("p1", unasked)
        node.trainer.exchanging.asks([unasked._replace(receiver=other.peer.me)])
        node.node.check_push("p1", unasked)  # now it was
        assert name_of(unasked.sender) == "p1"
        assert torch.equal(worth(node), torch.zeros(15))
        await world.stop()

    run(story())
