"""What messages leave out is neither lost nor told twice, whatever mass they go with."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError
from pushcen.learning import Learner, State, Task, Work, build_task
from pushcen.learning.residual import MOST_AGAIN, Residual
from pushcen.methods import PushCenLean
from pushcen.protocol import UNIT

CPU = torch.device("cpu")
PUSHES = st.lists(st.tuples(st.integers(1, 8 * UNIT), st.floats(-1, 1, width=32)), min_size=1, max_size=30)


@given(PUSHES, st.integers(1, 16))
def test_nothing_of_it_is_lost_however_mass_changes(pushes, spread):
    residual, owed = Residual(spread), 0.0
    for mass, left in pushes:
        told = residual.told(1, CPU, mass)
        owed += mass * (left - told.double().item())
        residual.note(torch.full((1,), left), mass)
        assert residual.row.double().item() * residual.mass == pytest.approx(owed, rel=1e-3, abs=1e-4 * 8 * UNIT)


@given(PUSHES, st.integers(1, 16))
def test_it_never_grows_by_more_than_a_seventh_from_one_push_to_the_next(pushes, spread):
    """With no bound, what was left out of a heavy push would be told hundreds of times as loud in a light one."""
    residual, before = Residual(spread), None
    for mass, left in pushes:
        told = abs(residual.told(1, CPU, mass).item())
        if before is not None:
            assert told <= before * 8 / 7 / spread + 1e-6
        residual.note(torch.full((1,), left), mass)
        before = abs(residual.row.item()) * (1 + 8 / residual.mass)  # masses are whole quanta


@pytest.mark.parametrize(("gives", "told"), [(4, 2.0), (16, 0.5), (1, MOST_AGAIN), (0, 1.0)])
def test_without_spread_all_of_it_is_told_up_to_a_bound(gives, told):
    residual, row = Residual(), torch.ones(2)
    residual.note(row, 8)
    assert residual.told(2, CPU, gives).tolist() == [told, told]
    assert residual.told(2, CPU, 0).data_ptr() == row.data_ptr()  # many clients have one each: it stays where it is


def test_a_message_that_gives_no_mass_tells_nothing_of_it_and_changes_nothing():
    """As one that serves a link again does: what it told would be told once more by the next push."""

    def learner():
        data = torch.randn(64, 256, generator=torch.Generator().manual_seed(1)), torch.arange(64) % 3
        task = build_task(lambda *_: Task(torch.nn.Linear(256, 32), data), 0, 1)
        made = Learner(task, PushCenLean(bits=1.0).update(), seed=1)
        made.step(Work(UNIT, [], gives=UNIT))
        return made

    one, other = learner(), learner()
    row = one.update.residual.row.clone()
    assert row.any()
    other.update.residual.row.zero_()
    assert one.encode()[0].data == other.encode()[0].data
    assert torch.equal(one.update.residual.row, row)
    assert one.encode(gives=UNIT)[0].data != other.encode(gives=UNIT)[0].data  # as a client does that leaves


@pytest.mark.parametrize("spread", [0, 3])
def test_it_goes_on_from_what_was_saved(spread):
    residual, again = Residual(spread), Residual(spread)
    for mass in (5 * UNIT, UNIT, 3 * UNIT):
        residual.note(torch.rand(4), mass)
    tensors, plain = residual.save()
    again.restore(State({name: row.clone() for name, row in tensors.items()}, plain))
    for one in (residual, again):
        one.note(torch.ones(4), UNIT)
    assert torch.equal(residual.told(4, CPU, 2 * UNIT), again.told(4, CPU, 2 * UNIT))
    assert Residual().save() == ({}, {})


def test_a_bad_spread_is_refused():
    with pytest.raises(OptionError, match="spread = -1: must be a whole number"):
        PushCenLean(spread=-1)
