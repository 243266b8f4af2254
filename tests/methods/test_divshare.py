"""DivShare's learner: every coordinate goes out once, and comes in averaged by count."""

import pytest
import torch

from pushcen.codec import Accumulator, accumulate
from pushcen.errors import PayloadError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Work
from pushcen.methods import DivShare
from pushcen.models import LeNet
from pushcen.protocol import UNIT
from tests.learning.tasks import tiny_learner


def row(learner):
    return torch.cat([t.detach().flatten() for t in learner.schema.tensors(learner.model)])


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 7, 92, 100])
@pytest.mark.parametrize("seed", [0, 9])
def test_every_coordinate_is_sent_in_exactly_one_part(parts, seed):
    learner = tiny_learner("divshare", parts=parts, cut_seed=seed)
    payloads = learner.encode()
    assert list(payloads) == list(range(1, parts + 1))
    counts, total = torch.zeros(learner.schema.size), Accumulator.zeros(learner.schema)
    for payload in payloads.values():
        one = Accumulator.zeros(learner.schema)
        accumulate(payload, 1, one)
        counts += one.weights()
        total.add(one)
    assert (counts == 1).all()
    assert torch.equal(total.total, row(learner))


def test_a_part_is_a_fifth_of_the_model():
    learner = Learner(Task(LeNet(), (torch.zeros(1, 3, 32, 32), torch.zeros(1).long())), DivShare().update())
    sizes = learner.sizes()
    assert len(sizes) == 5
    assert all(abs(size - 4 * learner.schema.size / 5) < 100 for size in sizes.values())


def test_a_coordinate_that_nobody_sent_keeps_the_own_value_to_the_last_bit():
    learner, other = tiny_learner("divshare", 0), tiny_learner("divshare", 1)
    mine, theirs = row(learner), row(other)
    payloads = other.encode()
    learner._merge(Work(UNIT, [Model(UNIT, 2, payloads)]))
    held = Accumulator.zeros(learner.schema)
    accumulate(payloads[2], 1, held)
    sent = held.weights() == 1
    assert 0 < sent.sum() < sent.numel()
    assert torch.equal(row(learner)[~sent], mine[~sent])
    torch.testing.assert_close(row(learner)[sent], ((mine + theirs) / 2)[sent], rtol=0, atol=1e-6)


def test_counts_differ_by_coordinate():
    """Part 1 came from three, part 2 from one: (own + sum) / 4 there, / 2 here."""
    learner = tiny_learner("divshare", 0, parts=2)
    others = [tiny_learner("divshare", seed, parts=2) for seed in (1, 2, 3)]
    mine, theirs = row(learner), [row(one) for one in others]
    sent = [one.encode() for one in others]
    learner._merge(Work(UNIT, [*(Model(UNIT, 1, one) for one in sent), Model(UNIT, 2, sent[0])]))
    first = Accumulator.zeros(learner.schema)
    accumulate(sent[0][1], 1, first)
    expected = torch.where(first.weights() == 1, (mine + sum(theirs)) / 4, (mine + theirs[0]) / 2)
    torch.testing.assert_close(row(learner), expected, rtol=0, atol=1e-6)


def test_training_between_is_plain():
    shared, alone = (
        tiny_learner("divshare", training=TrainingOptions(batch=8)),
        tiny_learner("independent", training=TrainingOptions(batch=8)),
    )
    assert shared.step(Work(1, [])).loss == alone.step(Work(1, [])).loss
    assert torch.equal(row(shared), row(alone))


def test_a_part_under_the_wrong_number_is_refused():
    learner, other = tiny_learner("divshare", 0), tiny_learner("divshare", 1)
    with pytest.raises(PayloadError, match="got part 1 as"):
        learner.fold(UNIT, 1, {1: other.encode()[2]})
