"""Pruned weights stay zero, the optimiser remembers, and the regulariser costs no graph."""

import warnings

import pytest
import torch

from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Work
from pushcen.protocol import UNIT
from tests.learning.tasks import tiny_data, tiny_learner, tiny_model

OPTIMISERS = {
    "sgd with momentum": TrainingOptions(epochs=2, batch=8, optimiser="sgd", lr=0.1, momentum=0.9),
    "adam": TrainingOptions(epochs=2, batch=8, optimiser="adam", lr=0.05),
    "adamw": TrainingOptions(epochs=2, batch=8, optimiser="adamw", lr=0.05, weight_decay=0.1),
}


class Watched(CentroidUpdate):
    """Notes which weights an event prunes, and whether they move after any of its steps."""

    def start(self, model):
        super().start(model)
        self.model = model
        self.moved, self.steps, self.pushed = 0, 0, 0
        for layer in self._pulls.layers:
            pruned = layer.indices == layer.zero
            assert 0 < pruned.sum() < pruned.numel()
            self.moved += int((layer.parameter[pruned] != 0).sum())

    def before_step(self):
        super().before_step()
        self.pushed += sum(int((x.parameter.grad[x.indices == x.zero] != 0).sum()) for x in self._pulls.layers)

    def after_step(self):
        super().after_step()
        self.steps = getattr(self, "steps", 0) + 1
        self.moved = getattr(self, "moved", 0)
        self.moved += sum(int((x.parameter[x.indices == x.zero] != 0).sum()) for x in self._pulls.layers)


def watched(training, **options):
    return Learner(Task(tiny_model(), tiny_data()), Watched(clusters=8, **options), training, seed=1)


@pytest.mark.parametrize("training", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("strength", [0.0, 0.1])
def test_pruned_weights_stay_exactly_zero_whatever_momentum_says(training, strength):
    learner = watched(training, strength=strength)
    for _ in range(4):
        learner.step(Work(1, []))
        assert learner.update.steps == learner.steps
        assert learner.update.pushed > 0, "gradients must push at them, or this proves nothing"
        assert learner.update.moved == 0


@pytest.mark.parametrize("training", OPTIMISERS.values(), ids=OPTIMISERS)
def test_without_the_mask_they_do_move(training):
    learner = watched(training, mask=False)
    learner.step(Work(1, []))
    assert learner.update.moved > 0


def test_what_was_pruned_in_one_event_may_live_in_the_next():
    learner = watched(OPTIMISERS["adam"])
    learner.step(Work(1, []))
    dead = learner.model[0].weight == 0
    other = tiny_learner(seed=5, clusters=8)
    learner.step(Work(1, [Model(1, 0, other.encode())]))
    assert (learner.model[0].weight[dead] != 0).any()


@pytest.mark.parametrize("training", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("method", ["pushcen", "async-dfedavg"])
def test_the_optimisers_memory_lasts_over_events(training, method):
    learner = tiny_learner(method, training=training)
    learner.step(Work(1, []))
    before = learner._optimiser
    first = {name: learner._optimiser.state[p] for name, p in learner.model.named_parameters()}
    learner.step(Work(1, [Model(1, 0, tiny_learner(method, seed=3).encode())]))
    assert learner._optimiser is before
    for name, p in learner.model.named_parameters():
        state = learner._optimiser.state[p]
        assert state is first[name]
        if training.optimiser != "sgd":
            assert int(state["step"]) == 2 * learner.steps


@pytest.mark.parametrize("training", OPTIMISERS.values(), ids=OPTIMISERS)
def test_who_adopts_forgets_optimiser_dictionary_and_own_weights(training):
    teacher = tiny_learner(seed=3, clusters=8)
    learner, fresh = (tiny_learner(seed=1, clusters=8, training=training) for _ in range(2))
    learner.step(Work(UNIT, [Model(UNIT, 0, tiny_learner(seed=4, clusters=8).encode())]))
    fresh._batches.bit_generator.state = learner._batches.bit_generator.state
    work = Work(0, [Model(UNIT, 0, teacher.encode())], adopts=True)
    learner.step(work)
    fresh.step(work)
    for mine, other in zip(learner.model.parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert all(torch.equal(t, fresh.update.dictionary[name]) for name, t in learner.update.dictionary.items())


def test_the_regulariser_makes_no_autograd_graph():
    """The tape of a step with a strong regulariser is that of one without: the same nodes, the same saved tensors."""

    def tape(strength):
        learner, nodes, saved = tiny_learner(strength=strength, clusters=8), [], []
        backward = learner.local.loss

        def loss(*given):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t):
                found = backward(*given)
            queue = [found[0].grad_fn]
            while queue:
                node = queue.pop()
                nodes.append(type(node).__name__)
                queue += [after for after, _ in node.next_functions if after is not None]
            return found

        learner.local.loss = loss
        learner.step(Work(1, []))
        return nodes, saved

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_pull, without = tape(30.0), tape(0.0)
    assert with_pull == without
    assert with_pull[0]


def test_anchors_and_masks_need_no_gradient_and_are_let_go_after_training():
    seen = []

    class Looks(CentroidUpdate):
        def before_step(self):
            super().before_step()
            seen.extend(layer.anchor.requires_grad or layer.weights.requires_grad for layer in self._pulls.layers)

    learner = Learner(Task(tiny_model(), tiny_data()), Looks(8), TrainingOptions(batch=8))
    learner.step(Work(1, []))
    assert seen
    assert not any(seen)
    assert not learner.update._pulls.layers


def test_density_is_the_share_of_weights_that_were_trained():
    learner = tiny_learner(clusters=8, strength=0.0)
    outcome = learner.step(Work(1, []))
    weights = torch.cat([p.flatten() for name, p in learner.model.named_parameters() if "weight" in name])
    assert outcome.density == int((weights != 0).sum()) / weights.numel()
    assert 0.5 < outcome.density < 1
    assert tiny_learner(clusters=8, mask=False).step(Work(1, [])).density == 1.0


@pytest.mark.parametrize(
    ("lr", "options", "warns"),
    [
        (2.4, {"strength": 0.1}, False),
        (2.6, {"strength": 0.1}, True),
        (2.6, {"strength": 0.0}, False),
        (2.6, {"strength": 0.1, "scale": "mean"}, False),
        (0.1, {"strength": 48 * 2.6, "scale": "mean"}, True),
    ],
)
def test_a_learning_rate_beyond_the_theorem_warns(lr, options, warns):
    """1 / (4 lambda) = 2.5; with a mean the strength of a layer is divided by its size, and the smaller one has 32."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tiny_learner(training=TrainingOptions(optimiser="sgd", lr=lr), clusters=8, **options)
    assert bool(seen) == warns
    assert all("the theorem asks for at most 1 / (4 lambda)" in str(one.message) for one in seen)
