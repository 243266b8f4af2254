"""FedKD: both models' steps recomputed with numpy; what travels and what stays; what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, mse_loss

from pushcen.codec import LowRank, decode_row
from pushcen.errors import OptionError, TaskError
from pushcen.learning import Learner, Task, TrainingOptions, Work
from pushcen.learning.distillation import divergence
from pushcen.methods import FedKD
from pushcen.protocol import UNIT
from pushcen.runtime.kept import weights_of
from pushcen.simulation.jobs import Evaluate
from pushcen.simulation.meters.gradient import Gradient
from pushcen.simulation.network import SimulatedNetwork
from tests.learning.tasks import tiny_data, tiny_model
from tests.methods.softmax import CLASSES, INPUTS, LR, SAMPLES, client_of, samples, start
from tests.methods.test_spafl import committed
from tests.runtime.tasks import tiny
from tests.runtime.world import World, until
from tests.runtime.world import run as run_story
from tests.simulation.test_determinism import EVERYTHING, Stops, files
from tests.simulation.worlds import norm_task, run

SMALL = "tests.methods.test_fedkd:small"


def small(teacher):
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))


def learner(model=None, training=None, **options):
    task = Task(model or tiny_model(), tiny_data(), tiny_data(1))
    return Learner(task, FedKD(**options).update(), training or TrainingOptions(batch=20, optimiser="sgd", lr=0.1))


def chances(row, inputs):
    scores = inputs @ row[: CLASSES * INPUTS].reshape(CLASSES, INPUTS).T + row[CLASSES * INPUTS :]
    found = np.exp(scores - scores.max(1, keepdims=True))
    return found / found.sum(1, keepdims=True)


def numbers(model):
    return torch.cat([tensor.detach().flatten() for tensor in model.parameters()]).double().numpy()


def test_teacher_and_student_make_the_papers_steps():
    one = client_of(0, FedKD()).learner
    with torch.no_grad():  # so that they have something to learn from each other
        one.model.student.weight.mul_(0.5)
    teacher, student = start(), start()
    student[: CLASSES * INPUTS] *= 0.5
    inputs, labels = samples(0)
    right = np.eye(CLASSES)[labels]
    for _ in range(5):
        one.step(Work(UNIT, []))
        taught, learnt = chances(teacher, inputs), chances(student, inputs)
        over = -np.log(taught[right > 0]).mean() - np.log(learnt[right > 0]).mean()
        for row, mine, other in ((teacher, taught, learnt), (student, learnt, taught)):
            wrong = (mine - right + (mine - other) / over) / SAMPLES
            row -= LR * np.concatenate([(wrong.T @ inputs).ravel(), wrong.sum(0)])
        np.testing.assert_allclose(numbers(one.model.teacher), teacher, atol=2e-4)
        np.testing.assert_allclose(numbers(one.model.student), student, atol=2e-4)
    assert abs(teacher - student).max() > 0.1


@pytest.mark.parametrize("hidden", [True, False])
def test_hidden_states_are_compared_through_a_matrix_where_sizes_differ(hidden):
    one = learner(student=SMALL, hidden=hidden)
    pair, (inputs, targets) = one.model, tiny_data()
    assert pair.matching.weight.shape == (8, 5)
    losses, states, outputs = [], [], []
    for model in (pair.teacher, pair.student):
        states.append(model[1](model[0](inputs)))
        outputs.append(model[2](states[-1]))
        losses.append(cross_entropy(outputs[-1], targets))
    over = float(sum(losses))
    matched = states[1] @ pair.matching.weight.T
    expected = []
    for which, model in enumerate((pair.teacher, pair.student)):
        target = log_softmax(outputs[1 - which], 1).detach()
        own = (
            losses[which]
            + kl_div(log_softmax(outputs[which], 1), target, reduction="batchmean", log_target=True) / over
        )
        if hidden:
            ends = (states[0], matched.detach()) if which == 0 else (matched, states[0].detach())
            own = own + mse_loss(*ends) / over
        expected += torch.autograd.grad(own, list(model.parameters()), retain_graph=True)
    before = [tensor.detach().clone() for tensor in (*pair.teacher.parameters(), *pair.student.parameters())]
    one.step(Work(UNIT, []))
    after = [*pair.teacher.parameters(), *pair.student.parameters()]
    for old, new, gradient in zip(before, after, expected, strict=True):
        torch.testing.assert_close(new.detach(), old - 0.1 * gradient, atol=1e-5, rtol=1e-4)


def test_chances_are_compared_by_token_and_without_padding():
    own, of, targets = torch.randn(2, 3, 7), torch.randn(2, 3, 7), torch.tensor([[1, 2, -100], [3, -100, -100]])
    kept = [(0, 0), (0, 1), (1, 0)]
    mine, theirs = (torch.stack([one[at] for at in kept]).softmax(1) for one in (own, of))
    expected = (theirs * (theirs / mine).log()).sum(1).mean()
    torch.testing.assert_close(divergence(own, of, targets), expected)


def test_the_student_alone_travels_in_factors_and_energy_rises():
    one = learner(energy_start=0.5, energy_end=0.9, rise_over=4)
    assert all(entry.name.startswith("student.") for entry in one.schema.entries)
    assert one.update.codecs()[0].energy == 0.5
    payload = one.step(Work(UNIT, [])).payloads[0]
    assert one.update.codecs()[0].energy == pytest.approx(0.6)
    assert len(payload) < one.sizes()[0]
    assert isinstance(payload.codec, LowRank)
    begin = next(iter(one.update.references.values()))
    moved = numbers(one.model.student) - begin.row.double().numpy()
    sent = decode_row(payload, begin).double().numpy() - begin.row.double().numpy()
    assert 0.5 <= (sent**2).sum() / (moved**2).sum() < 1
    for _ in range(5):
        one.step(Work(UNIT, []))
    assert one.update.codecs()[0].energy == pytest.approx(0.9)


def test_all_clients_begin_with_the_same_student_and_the_teacher_is_scored_and_exported():
    one, other = (learner(student=SMALL) for _ in range(2))
    assert torch.equal(one.model.student[0].weight, other.model.student[0].weight)
    one.step(Work(UNIT, []))
    shared = one.update.exported(one.model.state_dict(), shared=True)
    assert torch.equal(shared["0.weight"], one.model.student[0].weight)
    own = tiny_model(seed=4)
    own.load_state_dict(one.update.exported(one.model.state_dict()))
    assert Learner(Task(own, tiny_data(), tiny_data(1))).evaluate().loss == one.evaluate().loss


def test_figures_of_the_shared_model_are_the_students():
    one, shared = learner(student=SMALL), small(None)
    row, host = torch.as_tensor(numbers(shared)), SimpleNamespace(learners={0: one})
    before = {name: tensor.clone() for name, tensor in one.model.state_dict().items()}
    score, _ = Evaluate(elsewhere=True).run(host, 0, iter([row]))
    loss, gradient = Gradient().run(host, 0, iter([row]))
    inputs, targets = tiny_data(1)
    assert score.loss == pytest.approx(float(cross_entropy(shared(inputs), targets).detach()), rel=1e-5)
    inputs, targets = tiny_data()
    expected = cross_entropy(shared(inputs), targets)
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    expected_row = torch.cat([tensor.grad.flatten() for tensor in shared.parameters()])
    torch.testing.assert_close(gradient.float(), expected_row, rtol=1e-4, atol=1e-6)
    after = one.model.state_dict()
    assert [name for name in before if not torch.equal(before[name], after[name])] == []


def test_a_world_counts_what_was_really_sent_on_any_number_of_workers_and_resumed(tmp_path, monkeypatch):
    options = {**EVERYTHING, "method": FedKD(receivers=3, renew_after=32, energy_start=0.9), "function": norm_task}
    options["horizon"] = 3.0
    lengths, send = [], SimulatedNetwork.send

    def counted(self, node, envelopes):
        lengths.extend(len(self._engine.executor.product(one.payload)[0]) for one in envelopes)
        send(self, node, envelopes)

    monkeypatch.setattr(SimulatedNetwork, "send", counted)
    traffic = run(tmp_path / "whole", workers=1, **options)["traffic"]
    assert traffic["bytes_sent"] - traffic["reference_bytes"] == sum(lengths)
    assert len(set(lengths)) > 1
    run(tmp_path / "parts", workers=2, observer=Stops(2), **options)
    run(tmp_path / "parts", workers=2, resume=True, **options)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")


def test_it_runs_on_a_real_network_and_survives_a_restart(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.3)
        await world.start("p0", "p1", events=6, method=FedKD(), settings={"start_with": 1})
        await until(lambda: all(committed(world, name) == 6 for name in world.names))
        for node in map(world.node, world.names):
            await until(lambda node=node: node.metrics.received.labels("news")._value.get() > 0)
            assert node.metrics.refusals.labels("payload")._value.get() == 0
            assert node.metrics.refusals.labels("oversized")._value.get() == 0
        held = world.node("p1").learner.save()
        await world.stop("p1")
        await world.start("p1", method=FedKD(), live=False)
        again = world.node("p1").learner.save()
        kept = [name for name in held.tensors if name.startswith("model.")]
        assert [name for name in kept if not torch.equal(held.tensors[name], again.tensors[name])] == []
        assert again.plain["update"]["trained"] == 6
        await world.check()
        assert set(weights_of(world.state("p0"))) == set(tiny(0, 1).model.state_dict())

    run_story(story())


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (
            {"fit": lambda learner, batches: 0.0},
            {},
            "client 7: fedkd trains two models at once: the task must have no fit",
        ),
        ({"loss": lambda outputs, targets: outputs.sum()}, {}, "client 7: fedkd compares chances of classes"),
        ({}, {"student": "math:sqrt"}, "student"),
        ({}, {"student": "builtins:id"}, "student = 'builtins:id': client 7: gave"),
    ],
)
def test_where_it_cannot_live_it_is_refused(task, options, message):
    with pytest.raises((TaskError, OptionError), match=message):
        Learner(Task(tiny_model(), tiny_data(), **task), FedKD(**options).update(), client="client 7")


def test_numbers_are_no_classes():
    inputs, _ = tiny_data()
    one = Learner(Task(nn.Linear(6, 1), (inputs, inputs.sum(1, keepdim=True))), FedKD().update())
    with pytest.raises(TaskError, match="fedkd compares chances of classes"):
        one.step(Work(UNIT, []))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"energy_start": 0.0}, "energy_start = 0.0"),
        ({"energy_end": 2}, "energy_end = 2"),
        ({"rise_over": 0}, "rise_over = 0"),
        ({"hidden": 1}, "hidden = 1"),
        ({"student": "cnn"}, "student = 'cnn': must be module:name"),
        ({"student": "math:pi"}, "student = 'math:pi': must be a function"),
        ({"renew_after": -1}, "renew_after = -1"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        FedKD(**options)
