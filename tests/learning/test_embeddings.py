"""Word vectors: most rows of an embedding have no gradient in a step, and must not be moved by anything else."""

import torch
from torch import nn

from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work
from pushcen.learning.modules import tables_of


class Words(nn.Module):
    def __init__(self, tied=False, sparse=False):
        super().__init__()
        self.words, self.out = nn.Embedding(500, 8, sparse=sparse), nn.Linear(8, 500 if tied else 3, bias=False)
        if tied:
            self.out.weight = self.words.weight

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


def learner(profile="default", mask=False, strength=0.01, sparse=False):
    torch.manual_seed(3)
    ids = torch.randint(20, (64, 6))
    task = Task(Words(sparse=sparse), (ids, ids[:, 0] % 3))
    update = CentroidUpdate(clusters=16, strength=strength, mask=mask, profile=profile)
    return Learner(task, update, TrainingOptions(batch=16, lr=0.03))


def moved(one):
    before = one.model.words.weight.detach().clone()
    one.step(Work(1, []))
    return (one.model.words.weight.detach() - before).abs().amax(1)


def test_words_that_a_client_does_not_have_stay_where_they_are():
    rows = moved(learner())
    assert (rows[20:] == 0).all()
    assert (rows[:20] > 0).all()


def test_the_papers_profile_pulls_them():
    assert (moved(learner("paper"))[20:] > 0).any()


def test_the_papers_profile_pulls_them_where_gradients_are_sparse_too():
    dense, sparse = learner("paper"), learner("paper", sparse=True)
    for one in (dense, sparse):
        one.step(Work(1, []))
    torch.testing.assert_close(dense.model.words.weight, sparse.model.words.weight)


def test_the_other_layers_are_pulled_as_ever():
    plain, pulled = learner(strength=0.0), learner(strength=0.05)
    for one in (plain, pulled):
        one.step(Work(1, []))
    assert not torch.equal(plain.model.out.weight, pulled.model.out.weight)


def test_an_embedding_is_known_by_all_its_names():
    assert tables_of(Words(tied=True)) == ["words.weight", "out.weight"]


def test_what_the_pull_costs_is_counted_where_it_pulls():
    one = learner(mask=True)
    without = learner(mask=True, strength=0.0)
    assert one.update.flops(4) - without.update.flops(4) == 3 * 4 * one.model.out.weight.numel()
