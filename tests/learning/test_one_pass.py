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
from pushcen.learning.optimiser_state import remembered
from pushcen.learning.pull import Pull, Pulls
from pushcen.memory import move_apart
from tests.learning.tasks import tiny_data, tiny_model

exact = pytest.mark.skipif(not is_exact(), reason="PyTorch rounds in another order on this processor")
SHAPES = [(64, 5), (16,), (7, 3), (41, 29)]  # the third and the fourth are no multiple of 8 numbers


def passes(
    together,
    *,
    kind="adam",
    strengths=(0.02, 0.5, 0.1, 0.0),
    options=(),
    skipped=(),
    half=False,
    mask=True,
    steps=5,
    between=lambda step, weights, optimiser: None,
    odd=(),
):
    """Train layers by pull, Adam and mask; return all that has changed, and how many steps were made in one pass."""
    draw = torch.Generator().manual_seed(3)
    weights = [nn.Parameter(torch.randn(shape, generator=draw)) for shape in SHAPES]
    bias = nn.Parameter(torch.randn(10, generator=draw))
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
    count, made = 0, one_pass(pulls, optimiser, mask=mask) if together else None
    for step in range(steps):
        between(step, weights, optimiser)
        optimiser.param_groups[0]["lr"] *= 0.9
        for number, weight in enumerate((*weights, bias)):
            gradient = torch.randn(weight.shape, generator=draw) * 10 ** float(torch.randn((), generator=draw))
            for at, value in enumerate(odd):
                gradient.view(-1)[at * 7 % gradient.numel()] = value
            weight.grad = None if (step, number) in skipped else gradient
        if made is not None and made():
            count += 1
        else:
            pulls.add_gradients()
            optimiser.step()
            if mask:
                pulls.mask()
    memory = [value for one in optimiser.state.values() for value in one.values() if isinstance(value, torch.Tensor)]
    return [*weights, bias, *memory], count


def same(**options):
    (ours, count), (theirs, _) = passes(True, **options), passes(False, **options)
    ours, theirs = ([one.detach().view(torch.int32) for one in some] for some in (ours, theirs))  # -0.0 is not 0.0
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
@pytest.mark.parametrize("mask", [True, False])
def test_one_pass_has_the_bits_of_three(kind, skipped, mask):
    assert same(kind=kind, skipped=skipped, mask=mask, options={"weight_decay": 0.0}) == 4


@exact
def test_a_parameter_that_never_has_a_gradient_only_keeps_its_mask():
    assert same(skipped={(step, number) for step in range(5) for number in (0, 4)}) == 4
    assert same(skipped={(step, 2) for step in range(3)}) == 3, "its first step is PyTorch's"


@exact
@pytest.mark.parametrize("options", [{"weight_decay": 0.1}, {"maximize": True}, {"betas": (0.4, 0.9)}])
def test_what_pytorch_rounds_in_another_order_is_left_to_pytorch(options):
    assert same(options=options) == 0


@exact
def test_what_the_kernel_cannot_take_is_left_to_pytorch():
    assert same(half=True) == 0
    assert same(kind="sgd", options={"momentum": 0.9}) == 0
    assert same(options={"amsgrad": True}) == 0


@exact
@settings(max_examples=30, deadline=None)
@given(st.floats(1e-5, 3.0), st.floats(0.51, 0.99), st.floats(0.1, 0.9999), st.floats(1e-12, 0.1), st.floats(1e-6, 5.0))
def test_whatever_the_settings_are(lr, first, second, eps, strength):
    options = {"lr": lr, "betas": (first, second), "eps": eps}
    assert same(options=options, strengths=[strength] * 4) == 4


@exact
def test_whatever_the_gradients_are():
    assert same(odd=(0.0, -0.0, 1e-45, -1e-42, 1e-30, 3e38, -1e20)) == 4
    assert same(odd=(float("inf"),)) == 4


@exact
def test_settings_that_change_between_steps_count():
    def between(step, weights, optimiser):
        optimiser.param_groups[1]["weight_decay"] = 0.1 if step == 2 else 0.0
        optimiser.param_groups[1]["betas"] = (0.8, 0.9 + step / 100)

    assert same(between=between) == 3


@exact
def test_weights_that_are_put_elsewhere_between_steps_are_found():
    def between(step, weights, optimiser):
        if step == 2:
            weights[3].data = weights[3].detach() + 1

    assert same(between=between) == 1, "the layer's weights are no longer the parameter's"


@exact
def test_nothing_of_another_size_is_read_or_written():
    weight = nn.Parameter(torch.ones(32))
    optimiser = optimiser_class("adam")([weight], fused=True)
    weight.grad = torch.ones(32)
    optimiser.step()
    made = one_pass(Pulls(), optimiser, mask=True)
    assert made()
    weight.data = torch.ones(1 << 20)  # and gradient and moments as they were
    assert not made()
    weight.data = torch.ones(32)
    assert made()
    weight.data, memory = torch.ones(1 << 20), optimiser.state[weight]
    memory.update(exp_avg=torch.zeros(1 << 20), exp_avg_sq=torch.zeros(1 << 20))
    assert not made(), "the gradient is too short"


@exact
def test_parameters_that_are_added_between_steps_are_trained():
    added = []

    def between(step, weights, optimiser):
        if step == 2:
            added.append(nn.Parameter(torch.ones(24)))
            optimiser.add_param_group({"params": added[-1:], "lr": 0.1})
        for one in added[-1:]:
            one.grad = torch.ones(24)

    assert same(between=between) == 3, "the first step of all, and that in which some are new"
    assert all(torch.equal(added[0], one) and one[0] < 0.8 for one in added)


@exact
def test_a_step_that_is_not_made_in_one_pass_may_move_what_adam_remembers():
    def between(step, weights, optimiser):
        optimiser.param_groups[0]["weight_decay"] = 0.1 if step == 2 else 0.0
        if step == 3:
            move_apart(remembered(optimiser))
            for one in optimiser.state.values():
                one["exp_avg"].data = one["exp_avg"].clone()

    assert same(between=between) == 3


@exact
def test_a_step_that_somebody_has_put_in_place_of_the_optimisers_own_runs():
    optimiser = optimiser_class("adam")([nn.Parameter(torch.ones(16))], fused=True)
    assert one_pass(Pulls(), optimiser, mask=True) is not None
    optimiser.step = lambda: None
    assert one_pass(Pulls(), optimiser, mask=True) is None


@exact
@pytest.mark.parametrize("options", [{}, {"mask": False}, {"strength": 0.0}, {"profile": "paper"}])
def test_a_learners_events_are_the_same_bytes(monkeypatch, options):
    made = []
    step = module.OnePass.step
    monkeypatch.setattr(module.OnePass, "step", lambda self: made.append(step(self)) or made[-1])
    training = TrainingOptions(epochs=2, batch=8, clip=0.5)

    def trained(update):
        learner = Learner(Task(tiny_model(), tiny_data()), update(clusters=8, **options), training, seed=1)
        for _ in range(3):
            learner.step(Work(1, []))
        return learner.save().tensors

    class Apart(CentroidUpdate):
        def one_pass(self, optimiser):
            return None

    ours, theirs = trained(CentroidUpdate), trained(Apart)
    assert made.count(False) == 1, "the first step of all"
    assert made.count(True) > 5
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_where_bits_would_differ_it_is_not_used(monkeypatch):
    monkeypatch.setattr(module, "is_exact", lambda: False)
    _, count = passes(True)
    assert count == 0
