"""Adam's step with pull and mask in one pass has the bits of three, and leaves to them what it is not made for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work
from pushcen.learning import one_pass as module
from pushcen.learning.one_pass import is_exact, one_pass
from pushcen.learning.optimiser import optimiser_class
from pushcen.learning.pull import Pull, Pulls
from tests.learning.tasks import tiny_data, tiny_model

exact = pytest.mark.skipif(not is_exact(), reason="PyTorch rounds in another order on this processor")
SHAPES = [(64, 5), (16,), (7, 3), (40, 12)]  # the third has no multiple of 16 numbers


def passes(together, *, kind="adam", strengths=(0.02, 0.5, 0.1, 0.0), options=(), skipped=(), half=False, steps=5):
    """Train layers by pull, Adam and mask; return all that has changed, and how many steps were made in one pass."""
    draw = torch.Generator().manual_seed(3)
    weights = [nn.Parameter(torch.randn(shape, generator=draw)) for shape in SHAPES]
    bias = nn.Parameter(torch.randn(8, generator=draw))
    if half:
        weights[0].data = weights[0].data.T.contiguous().T  # as layers are after `channels_last`
    layers = []
    for number, (weight, strength) in enumerate(zip(weights, strengths, strict=True)):
        indices = torch.randint(8, weight.shape, generator=draw, dtype=torch.uint8)
        layers.append(Pull(weight, indices, torch.randn(8, generator=draw), zero=number, strength=strength))
    layers[1].release(torch.arange(16) % 3 == 0)
    pulls = Pulls(layers)
    groups = [{"params": weights[:2], "lr": 0.03}, {"params": [*weights[2:], bias], "betas": (0.7, 0.95), "eps": 1e-4}]
    optimiser = optimiser_class(kind)(groups, fused=True, **dict(options))
    count = 0
    for step in range(steps):
        optimiser.param_groups[0]["lr"] *= 0.9
        for number, weight in enumerate((*weights, bias)):
            gradient = torch.randn(weight.shape, generator=draw) * 10 ** float(torch.randn((), generator=draw))
            weight.grad = None if (step, number) in skipped else gradient
        made = one_pass(pulls, optimiser) if together else None
        if made is None:
            pulls.add_gradients()
            optimiser.step()
            pulls.mask()
        else:
            made()
            count += 1
    memory = [value for one in optimiser.state.values() for value in one.values() if isinstance(value, torch.Tensor)]
    return [*weights, bias, *memory], count


def same(**options):
    (ours, count), (theirs, _) = passes(True, **options), passes(False, **options)
    assert len(ours) == len(theirs)
    assert all(map(torch.equal, ours, theirs))
    return count


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512") or not torch.__version__.startswith("2.13."),
    reason="it follows this PyTorch's kernel on such processors",
)
def test_it_is_exact_where_it_was_made():
    assert is_exact()


@exact
@pytest.mark.parametrize("kind", ["adam", "adamw"])
@pytest.mark.parametrize("skipped", [(), {(2, 0)}, {(1, 3), (3, 4)}, {(2, number) for number in range(5)}])
@pytest.mark.parametrize("half", [False, True])
def test_one_pass_has_the_bits_of_three(kind, skipped, half):
    assert same(kind=kind, skipped=skipped, half=half, options={"weight_decay": 0.0}) >= 3


@exact
@pytest.mark.parametrize("options", [{"weight_decay": 0.1}, {"maximize": True}, {"betas": (0.4, 0.9)}])
def test_what_pytorch_rounds_in_another_order_is_left_to_pytorch(options):
    assert same(options=options) == 5


@exact
@settings(max_examples=30, deadline=None)
@given(st.floats(1e-5, 3.0), st.floats(0.51, 0.99), st.floats(0.1, 0.9999), st.floats(1e-12, 0.1), st.floats(1e-6, 5.0))
def test_whatever_the_settings_are(lr, first, second, eps, strength):
    options = {"lr": lr, "betas": (first, second), "eps": eps}
    assert same(options=options, strengths=[strength] * 4) == 5


@exact
def test_other_optimisers_are_left_to_pytorch():
    _, count = passes(True, options={"amsgrad": True})
    assert count == 0
    _, count = passes(True, kind="sgd", options={"momentum": 0.9})
    assert count == 0


@exact
def test_a_step_that_somebody_has_put_in_place_of_the_optimisers_own_runs():
    weight = nn.Parameter(torch.ones(16))
    pulls = Pulls([Pull(weight, torch.zeros(16, dtype=torch.uint8), torch.ones(2), zero=1, strength=0.1)])
    optimiser = optimiser_class("adam")([weight], fused=True)
    weight.grad = torch.ones(16)
    optimiser.step()
    assert one_pass(pulls, optimiser) is not None
    optimiser.step = lambda: None
    assert one_pass(pulls, optimiser) is None


@exact
@pytest.mark.parametrize("mask", [True, False])
def test_a_learners_events_are_the_same_bytes(monkeypatch, mask):
    made = []
    step = module._step
    monkeypatch.setattr(module, "_step", lambda *all: made.append(1) or step(*all))
    training = TrainingOptions(epochs=2, batch=8, clip=0.5)

    def trained(update):
        learner = Learner(Task(tiny_model(), tiny_data()), update(clusters=8, mask=mask), training, seed=1)
        for _ in range(3):
            learner.step(Work(1, []))
        return learner.save().tensors

    class Apart(CentroidUpdate):
        def one_pass(self, optimiser):
            return None

    ours, theirs = trained(CentroidUpdate), trained(Apart)
    assert bool(made) is mask, "without a mask there is nothing to do after the step"
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_where_bits_would_differ_it_is_not_used(monkeypatch):
    monkeypatch.setattr(module, "is_exact", lambda: False)
    _, count = passes(True)
    assert count == 0
