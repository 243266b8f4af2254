"""What a learner saves is all of it: a restored one goes on bit for bit."""

import copy
import json

import pytest
import torch
from torch import nn

from pushcen.learning import Learner, Model, State, Task, TrainingOptions, Work
from pushcen.methods import method_named
from pushcen.protocol import UNIT
from tests.learning.tasks import generator

METHODS = {
    "pushcen": {"clusters": 8},
    "pushcen, paper": {"clusters": 8, "profile": "paper"},
    "push-sum": {},
    "async-dfedavg": {},
    "swift": {},
    "swift-random": {},
    "divshare": {"parts": 3},
    "independent": {},
    "epidemic": {},
    "sgp": {"overlap": True},
}
OPTIMISERS = {
    "sgd": TrainingOptions(batch=8, optimiser="sgd", lr=0.05, momentum=0.9),
    "adam": TrainingOptions(epochs=2, batch=8, lr=0.01),
    "plain sgd, shared BatchNorm": TrainingOptions(batch=8, optimiser="sgd", lr=0.05, batch_norm="shared"),
}


def make(method, training, seed=0):
    """A learner with everything that has a state: dropout, BatchNorm, an optimiser, streams."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout2d(0.2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(64, 5)
        )
    g = generator(0)
    data = torch.randn(30, 1, 6, 6, generator=g), torch.randint(5, (30,), generator=g)
    kind = method_named(method.partition(",")[0])(**METHODS[method])
    return Learner(Task(model, data, data), kind.update(), training, client=f"client {seed}", seed=seed)


def events(method, training, seed):
    """Messages for two events, with folds."""
    sent = [make(method, training, other).encode() for other in range(seed, seed + 3)]
    parts = list(sent[0])
    messages = [Model(UNIT // (3 + i), parts[i % len(parts)], one) for i, one in enumerate(sent)]
    return messages[:2], messages[2:]


def go_on(learner, method, training):
    """Finish an event that has begun, and do another; give all there is to see."""
    waiting, folds = events(method, training, 30)
    first = learner.step(Work(UNIT // 2, waiting))
    for weight, part, payloads in folds:
        learner.fold(weight, part, payloads)
    learner.take()
    second = learner.step(Work(UNIT // 5, waiting[:1]))
    sent = [payload.data for outcome in (first, second) for payload in outcome.payloads.values()]
    return sent, first.loss, second.loss, learner.evaluate(), learner.save()


def same(one, other):
    if isinstance(one, State):
        assert one.plain == other.plain
        assert one.tensors.keys() == other.tensors.keys()
        assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())
    else:
        assert one == other


def through_json(state):
    return State(copy.deepcopy(state.tensors), json.loads(json.dumps(state.plain)))


@pytest.mark.parametrize("training", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("method", METHODS)
def test_a_restored_learner_goes_on_bit_for_bit(method, training):
    learner = make(method, training)
    waiting, folds = events(method, training, 20)
    learner.step(Work(UNIT, waiting))
    for weight, part, payloads in folds:
        learner.fold(weight, part, payloads)
    learner.take()
    for weight, part, payloads in folds + waiting:
        learner.fold(weight, part, payloads)
    state = through_json(learner.save())
    other = make(method, training, seed=7)  # other weights, other streams
    other.step(Work(UNIT, []))
    other.restore(state)
    assert (other.events, learner.events) == (1, 1)
    for one, two in zip(go_on(learner, method, training), go_on(other, method, training), strict=True):
        same(one, two)


@pytest.mark.parametrize("method", METHODS)
def test_a_state_can_be_restored_twice(method):
    """What the first learner does later must not reach into the state."""
    training = OPTIMISERS["adam"]
    learner = make(method, training)
    waiting, folds = events(method, training, 20)
    learner.step(Work(UNIT, waiting))
    for weight, part, payloads in folds + waiting:
        learner.fold(weight, part, payloads)
    state = learner.save()
    before = copy.deepcopy(state)
    seen = []
    for _ in range(2):
        learner.restore(state)
        learner.take()
        seen.append(go_on(learner, method, training))
    same(state, before)
    for one, two in zip(*seen, strict=True):
        same(one, two)


@pytest.mark.parametrize("method", ["pushcen", "push-sum", "async-dfedavg"])
def test_a_commit_leaves_out_what_was_folded(method):
    training = OPTIMISERS["adam"]
    learner, never = make(method, training), make(method, training)
    waiting, folds = events(method, training, 20)
    for one in (learner, never):
        one.step(Work(UNIT, waiting))
    for weight, part, payloads in folds:
        learner.fold(weight, part, payloads)
    same(learner.save(whole=False), never.save())
    learner.take()
    same(learner.save(whole=False), never.save())
    assert learner.save().tensors.keys() > never.save().tensors.keys()


@pytest.mark.parametrize("method", METHODS)
def test_put_back_is_as_if_take_had_not_been(method):
    training = OPTIMISERS["adam"]
    learner, never = make(method, training), make(method, training)
    _, folds = events(method, training, 20)
    for one in (learner, never):
        for weight, part, payloads in folds:
            one.fold(weight, part, payloads)
    learner.take()
    learner.put_back()
    same(learner.save(), never.save())


@pytest.mark.parametrize("method", METHODS)
def test_what_is_folded_while_an_event_is_undone_joins_what_was_folded_before(method):
    training = OPTIMISERS["adam"]
    learner, never = make(method, training), make(method, training)
    waiting, folds = events(method, training, 20)
    for one, taken in ((learner, True), (never, False)):
        for weight, part, payloads in folds:
            one.fold(weight, part, payloads)
        if taken:
            one.take()
        for weight, part, payloads in waiting[:1]:  # one: float32 sums of more depend on their order
            one.fold(weight, part, payloads)
        if taken:
            one.put_back()
    same(learner.save(), never.save())


def test_what_is_folded_during_an_event_belongs_to_the_next():
    training = OPTIMISERS["adam"]
    learner, never = make("pushcen", training), make("pushcen", training)
    waiting, folds = events("pushcen", training, 20)
    learner.take()
    for weight, part, payloads in folds:
        learner.fold(weight, part, payloads)
    assert learner.step(Work(UNIT, waiting)).loss == never.step(Work(UNIT, waiting)).loss
    same(learner.save(whole=False), never.save())


def test_a_state_without_the_optimiser_starts_with_a_fresh_one():
    training = OPTIMISERS["adam"]
    learner, other = make("push-sum", training), make("push-sum", training, seed=3)
    learner.step(Work(1, []))
    state = learner.save(optimiser=False)
    assert not [name for name in state.tensors if name.startswith("optimiser")]
    other.restore(state)
    assert not other._optimiser.state
    assert torch.equal(other.model[0].weight, learner.model[0].weight)


@pytest.mark.parametrize("method", METHODS)
def test_saving_is_a_copy_that_training_does_not_change(method):
    training = OPTIMISERS["adam"]
    learner = make(method, training)
    waiting, folds = events(method, training, 20)
    learner.step(Work(UNIT, waiting))
    for weight, part, payloads in folds:
        learner.fold(weight, part, payloads)
    state = learner.save()
    before = copy.deepcopy(state)
    for weight, part, payloads in waiting:
        learner.fold(weight, part, payloads)
    learner.take()
    learner.step(Work(UNIT, []))
    same(state, before)


def test_a_generator_for_dropout_that_is_not_saved_would_show():
    """Two learners that differ in the dropout stream alone differ: the tests above can fail."""
    one, other = make("push-sum", OPTIMISERS["adam"]), make("push-sum", OPTIMISERS["adam"])
    other._noise.generator.manual_seed(99)
    assert one.step(Work(1, [])).loss != other.step(Work(1, [])).loss


def test_dropout_draws_from_nobody_elses_stream():
    before = torch.get_rng_state()
    losses = []
    for disturb in (0, 5):
        torch.rand(disturb)
        losses.append(make("push-sum", OPTIMISERS["adam"]).step(Work(1, [])).loss)
    assert losses[0] == losses[1]
    torch.set_rng_state(before)
    make("push-sum", OPTIMISERS["adam"]).step(Work(1, []))
    assert torch.equal(before, torch.get_rng_state())
