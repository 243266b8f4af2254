"""Adam's quick step is PyTorch's own to the last bit, and leaves to PyTorch what it is not made for."""

import itertools

import pytest
import torch
from torch import nn

from pushcen.learning.adam import quick
from pushcen.learning.optimiser import optimiser_class

KINDS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 3, bias=False), nn.Linear(3, 2))


def groups(layers):
    return [{"params": layers[0].parameters(), "lr": 0.2, "weight_decay": 0.3}, {"params": layers[2:].parameters()}]


def trained(kind, layers, options, skipped=(), steps=4):
    optimiser = kind(groups(layers), **options)
    draw = torch.Generator().manual_seed(5)
    for step in range(steps):
        for number, parameter in enumerate(layers.parameters()):
            gradient = torch.randn(parameter.shape, generator=draw, dtype=torch.float32).to(parameter.dtype)
            parameter.grad = None if (step, number) in skipped else gradient
        optimiser.step()
    return optimiser


def same(one, other):
    ours, theirs = (
        list(itertools.chain(*(memory.values() for memory in optimiser.state.values()))) for optimiser in (one, other)
    )
    return len(ours) == len(theirs) > 0 and all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.7), "eps": 1e-3}, {"amsgrad": True}, {"maximize": True}])
@pytest.mark.parametrize("skipped", [(), {(0, 1), (2, 3)}, {(1, number) for number in range(5)}])
@pytest.mark.parametrize("half", [False, True])
def test_a_step_is_pytorchs_own_to_the_last_bit(name, options, skipped, half):
    options = {"lr": 0.02, "weight_decay": 0.1, "fused": True, **options}
    one, other = model(), model()
    if half:
        one[2].double(), other[2].double()
    made = trained(optimiser_class(name), one, options, skipped)
    assert same(made, trained(KINDS[name], other, options, skipped))
    assert all(map(torch.equal, one.parameters(), other.parameters()))


def test_the_quick_step_is_what_runs_from_the_second_on():
    asked = []

    def theirs(self):
        asked.append(self)
        torch.optim.Adam.step(self)

    made = type("Counted", (torch.optim.Adam,), {"step": quick(theirs)})
    trained(made, model(), {"fused": True})
    assert len(asked) == 1


def test_a_sparse_gradient_is_refused_as_by_pytorch():
    table = nn.Embedding(5, 3, sparse=True)
    optimiser = optimiser_class("adam")(table.parameters(), fused=True)
    table.weight.grad = torch.zeros(5, 3)
    optimiser.step()
    table.weight.grad = None
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse"):
        optimiser.step()
