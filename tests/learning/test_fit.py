"""A task's own function in place of the training loop, with everything else still around it."""

import contextlib
import itertools

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from pushcen.errors import DivergenceError, OptionError, TaskError
from pushcen.learning import CentroidUpdate, Learner, ScheduleOptions, Task, TrainingOptions, Work
from tests.learning.tasks import tiny_data, tiny_model
from tests.learning.test_save import same, through_json

TRAINING = TrainingOptions(epochs=2, batch=8, lr=0.01)
EVERYTHING = TrainingOptions(
    epochs=2, batch=8, lr=0.01, clip=0.1, label_smoothing=0.1, schedule=ScheduleOptions("cosine", unit="steps", over=9)
)


def plain(learner, batches):
    """What the loop does."""
    total = 0.0
    for inputs, targets in batches:
        learner.optimiser.zero_grad()
        loss = learner.loss(inputs, targets)
        loss.backward()
        learner.optimiser.step()
        total += float(loss.detach())
    return total / len(batches)


def learner_of(fit=None, training=TRAINING, seed=0, model=None, **update):
    task = Task(model or tiny_model(seed), tiny_data(), tiny_data(9), fit=fit)
    return Learner(task, CentroidUpdate(8, **update), training, client="client 7", seed=seed)


@pytest.mark.parametrize("training", [TRAINING, EVERYTHING], ids=["plain", "everything"])
def test_a_loop_of_ones_own_that_does_the_same_is_the_same(training):
    mine, usual = learner_of(plain, training), learner_of(None, training)
    for _ in range(3):
        one, other = mine.step(Work(1, [])), usual.step(Work(1, []))
        assert one.payloads[0].data == other.payloads[0].data
        facts = [(found.loss, found.steps, found.samples, found.flops, found.density) for found in (one, other)]
        assert facts[0] == facts[1]
    same(mine.save(), usual.save())


def test_mask_and_anchor_hold_in_a_loop_of_ones_own():
    seen = []

    def fit(learner, batches):
        for inputs, targets in batches:
            learner.loss(inputs, targets).backward()
            learner.optimiser.step()
            seen.append(int((learner.model[0].weight == 0).sum()))
        return 1.0

    outcome = learner_of(fit).step(Work(1, []))
    assert outcome.density < 1
    assert min(seen) > 0


def test_a_loop_of_ones_own_goes_on_bit_for_bit():
    learner = learner_of(plain)
    learner.step(Work(1, []))
    state = through_json(learner.save())
    other = learner_of(plain, seed=5)
    other.restore(state)
    assert learner.step(Work(1, [])).payloads[0].data == other.step(Work(1, [])).payloads[0].data


def test_the_function_knows_client_event_and_options():
    seen = []

    def fit(learner, batches):
        seen.append((learner.client, learner.event, learner.training.batch, len(batches)))
        return plain(learner, batches)

    learner = learner_of(fit)
    learner.step(Work(1, []))
    learner.step(Work(1, []))
    assert seen == [("client 7", 1, 8, 4), ("client 7", 2, 8, 4)]


def test_a_loop_may_make_other_steps_than_planned_and_they_are_counted():
    def fit(learner, batches):
        for _ in range(2):
            for inputs, targets in itertools.islice(batches, 3):
                loss = learner.loss(inputs, targets)
                loss.backward()
                learner.optimiser.step()
        return loss

    learner = learner_of(fit)
    assert learner.step(Work(1, [])).steps == 6
    assert learner.steps == 4  # which the compute time follows from


def test_operations_of_a_loop_of_ones_own_are_counted():
    def twice(learner, batches):
        for inputs, targets in batches:
            (learner.loss(inputs, targets) + learner.loss(inputs.flip(0), targets.flip(0))).backward()
            learner.optimiser.step()
        return 1.0

    strength = {"strength": 0.0, "mask": False}
    usual, double = (learner_of(fit, **strength) for fit in (None, twice))
    for learner in (usual, double):
        learner.step(Work(1, []))
    assert [double.local.cost.total, double.step(Work(1, [])) and double.local.cost.total] == [
        2 * usual.local.cost.total
    ] * 2


def nothing(learner, batches):
    for inputs, targets in batches:
        learner.loss(inputs, targets).backward()
    return 1.0


def own_steps(learner, batches):
    for inputs, targets in batches:
        loss = learner.loss(inputs, targets)
        with torch.no_grad():
            for p, g in zip(
                learner.model.parameters(), torch.autograd.grad(loss, learner.model.parameters()), strict=True
            ):
                p -= 0.1 * g
    return loss


def no_loss(learner, batches):
    plain(learner, batches)


def many_losses(learner, batches):
    plain(learner, batches)
    return torch.zeros(3)


def a_mistake(learner, batches):
    for number, (inputs, targets) in enumerate(batches):
        if number == 2:
            {}["age"]
        learner.loss(inputs, targets).backward()
        learner.optimiser.step()


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (nothing, r"client 7, event 1: the task's fit made no step: learner\.optimiser\.step\(\) must change"),
        (own_steps, r"client 7, event 1: the task's fit made no step"),
        (no_loss, r"client 7, event 1: the task's fit gave None: must be one number, the mean loss"),
        (many_losses, r"client 7, event 1: the task's fit gave a tensor \[3\] float32: must be one number"),
        (a_mistake, r"client 7, event 1, step 3: KeyError: 'age' \(test_fit\.py, line \d+\)"),
    ],
)
def test_what_is_wrong_with_a_loop_is_told_in_one_line(fit, said):
    with pytest.raises(TaskError, match=said):
        learner_of(fit).step(Work(1, []))


def test_no_counter_of_operations_stays_behind_wherever_a_loop_ends():
    class Odd(nn.Sequential):
        """A model that nobody has counted yet."""

    model = Odd(*tiny_model())

    def stops(learner, batches):
        for inputs, targets in batches:
            loss = learner.loss(inputs, targets)
            loss.backward()
            learner.optimiser.step()
            break
        return loss

    for fit in (stops, lambda learner, batches: {}[next(iter(batches))]):
        with contextlib.suppress(TaskError):
            learner_of(fit, model=model).step(Work(1, []))
        assert _get_current_dispatch_mode() is None


def test_a_loss_that_is_not_finite_is_a_divergence_and_is_undone():
    def fit(learner, batches):
        plain(learner, batches)
        return float("nan")

    learner = learner_of(fit)
    before = [p.detach().clone() for p in learner.model.parameters()]
    with pytest.raises(DivergenceError, match=r"client 7, event 1: the loss is nan; a smaller training\.lr may help"):
        learner_of(fit).step(Work(1, []))
    assert "the loss is nan" in learner.attempt(Work(1, [])).failure
    assert all(torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True))


def test_weights_that_are_not_finite_are_a_divergence():
    def fit(learner, batches):
        plain(learner, batches)
        with torch.no_grad():
            learner.model[0].weight.fill_(float("inf"))
        return 1.0

    with pytest.raises(DivergenceError, match="client 7, event 1"):
        learner_of(fit).step(Work(1, []))


def test_a_fit_that_is_no_function_and_micro_batches_beside_it_are_refused():
    with pytest.raises(TaskError, match="client 7: the task's fit is 'mine': must be a function"):
        learner_of("mine")
    with pytest.raises(
        OptionError, match=r"training\.micro_batch = 2: client 7: must be 0 where the task has its own fit"
    ):
        learner_of(plain, TrainingOptions(batch=8, micro_batch=2))
