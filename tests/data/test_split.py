"""Every sample goes to exactly one client, the same one for the same seed, and nobody gets a copy."""

import random

import flwr_datasets.partitioner as flower
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from pushcen.data import (
    Data,
    DataError,
    Dirichlet,
    Iid,
    Natural,
    OptionError,
    Pathological,
    Shards,
    count,
    load,
    partition_named,
    sources,
    split,
    summarise,
)
from pushcen.data.partitions import _ask


def data(samples=600, classes=10, owners=None, seed=0):
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, classes, samples))
    names = tuple(map(str, range(classes)))
    return Data("made", torch.arange(samples).float()[:, None], labels, names, owners=owners)


def rows(client):
    return torch.cat((client.train.rows, client.test.rows)).tolist()


def everybodys(divided):
    return sorted(row for client in divided for row in rows(client))


partitions = st.one_of(
    st.builds(Dirichlet, st.floats(0.3, 100)),
    st.just(Iid()),
    st.builds(Shards, st.integers(2, 5)),
    st.builds(Pathological, st.integers(3, 10)),
)


@settings(max_examples=60)
@given(partition=partitions, clients=st.integers(8, 20), seed=st.integers(0, 2**64), samples=st.integers(400, 700))
def test_every_sample_belongs_to_exactly_one_client(partition, clients, seed, samples):
    made = data(samples)
    divided = split(made, clients, partition, min_samples=1, seed=seed)
    assert len(divided) == clients
    assert everybodys(divided) == list(range(samples))
    assert all(len(client.train) for client in divided)
    assert count(divided).sum(axis=0).tolist() == torch.bincount(made.labels, minlength=10).tolist()


@settings(max_examples=20)
@given(owners=st.lists(st.integers(0, 6), min_size=40, max_size=80), seed=st.integers(0, 2**32))
def test_natural_owners_keep_exactly_what_is_theirs(owners, seed):
    numbers = np.unique(owners, return_inverse=True)[1]
    made = data(len(owners), owners=torch.from_numpy(numbers))
    divided = split(made, None, Natural(), min_samples=1, seed=seed)
    for client in divided:
        assert sorted(rows(client)) == np.flatnonzero(numbers == client.client).tolist()


KINDS = [Dirichlet(0.5), Iid(), Shards(2), Pathological(2), Natural()]


@pytest.mark.parametrize("partition", KINDS, ids=lambda kind: kind.name)
def test_the_seed_alone_decides(partition):
    made = data(owners=torch.arange(600) % 12)

    def drawn(seed):
        return [client.train.rows.tolist() for client in split(made, 12, partition, seed=seed)]

    first = drawn(3)
    for noise in range(2):
        random.seed(noise)
        np.random.seed(noise)  # noqa: NPY002
        torch.manual_seed(noise)
        assert drawn(3) == first
    assert drawn(4) != first


@pytest.mark.parametrize("partition", KINDS, ids=lambda kind: kind.name)
def test_global_generators_are_left_alone(partition):
    made = data(owners=torch.arange(600) % 12)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    split(made, 12, partition, seed=1)
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002


def test_a_known_division_stays_what_it_is():
    sizes = [len(client) for client in split(load("digits"), 8, Dirichlet(0.5), seed=7)]
    assert sizes == [180, 311, 339, 296, 179, 224, 78, 190]


def test_a_thousand_clients_share_one_copy():
    made = data(20_000)
    divided = split(made, 1000, Iid())
    for client in divided:
        for view in (client.train, client.test):
            assert view.inputs is made.inputs
            assert view.labels is made.labels
            assert view.rows.numel() <= 20
    inputs, labels = divided[999].train[torch.tensor([2, 0])]
    wanted = divided[999].train.rows[[2, 0]]
    assert inputs[:, 0].tolist() == wanted.tolist()
    assert labels.tolist() == made.labels[wanted].tolist()


def test_a_view_feeds_a_data_loader():
    view = split(data(), 3, Iid())[1].train
    batches = list(torch.utils.data.DataLoader(view, batch_size=64))
    assert torch.equal(torch.cat([labels for _, labels in batches]), view[:][1])


@pytest.mark.parametrize(
    ("samples", "share", "tests"), [(600, 0.2, 120), (10, 0.2, 2), (2, 0.2, 1), (3, 0.9, 2), (1, 0.2, 0), (9, 0.0, 0)]
)
def test_a_fifth_is_for_testing_and_something_is_always_left_to_train_on(samples, share, tests):
    divided = split(data(samples), 1, Iid(), test_share=share, min_samples=1)
    assert (len(divided[0].train), len(divided[0].test)) == (samples - tests, tests)
    assert everybodys(divided) == list(range(samples))


def test_pathological_clients_have_so_many_classes_and_no_more():
    divided = split(data(2000), 25, Pathological(3))
    assert [row.classes for row in summarise(divided)] == [3] * 25
    assert (count(split(data(), 6, Pathological(5), seed=2)) > 0).sum(axis=1).tolist() == [5] * 6


def test_a_smaller_alpha_is_more_skewed():
    shares = [
        np.mean([row.largest_share for row in summarise(split(data(5000), 20, Dirichlet(alpha)))])
        for alpha in (0.1, 1.0, 100.0)
    ]
    assert shares[0] > 1.5 * shares[1] > 2 * shares[2]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"clients": 301},
            DataError,
            "clients = 301: made has 600 samples, enough for 300 clients with min_samples = 2",
        ),
        ({"clients": 0}, OptionError, "clients = 0: must be a whole number, 1 or more"),
        ({"clients": 2, "test_share": 1.0}, OptionError, "test_share = 1.0: must be a number, at least 0 and less"),
        ({"clients": 2, "min_samples": 0}, OptionError, "min_samples = 0: must be a whole number, 1 or more"),
        ({"clients": 2, "seed": -1}, OptionError, "seed = -1: must be a whole number, 0 or more"),
        ({"clients": 2, "partition": Natural()}, DataError, "made does not say who owns its samples"),
        ({"clients": 4, "partition": Pathological(3)}, DataError, "per_client = 3: with 10 classes and 4 clients"),
        ({"clients": 250, "partition": Shards(1)}, DataError, "pieces of 3 make 200, too few for 250 clients"),
        ({"clients": 500, "partition": Pathological(10), "min_samples": 1}, DataError, "clients = 500: Pathological"),
        (
            {"clients": 100, "partition": Dirichlet(0.05)},
            DataError,
            r"alpha = 0.05: .*the first left client \d+ with 0",
        ),
    ],
)
def test_what_cannot_be_served_says_what_could(arguments, error, message):
    with pytest.raises(error, match=message):
        split(data(), **arguments)


def test_a_client_with_a_single_sample_is_named_unless_it_is_allowed():
    made = data(9, owners=torch.tensor([0, 0, 0, 0, 1, 2, 2, 2, 2]))
    with pytest.raises(DataError, match="client 1 of 3 would get 1 samples by Natural"):
        split(made, None, Natural())
    assert len(split(made, None, Natural(), min_samples=1)[1].train) == 1
    with pytest.raises(DataError, match="clients = 4: the data names 3 owners"):
        split(made, 4, Natural(), min_samples=1)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_alpha_must_be_a_number_above_zero(alpha):
    with pytest.raises(OptionError, match=rf"alpha = {alpha}: must be a number above 0"):
        partition_named("dirichlet", alpha=alpha)


@pytest.mark.parametrize("samples", [50_000, 60_000])
def test_at_the_papers_size_every_sample_is_used_once(samples):
    made = Data("labels", torch.zeros(samples, 1), torch.arange(samples) % 10, tuple("0123456789"))
    assert everybodys(split(made, 100, Dirichlet(0.1), seed=5)) == list(range(samples))


@pytest.mark.parametrize(("clients", "classes", "alpha", "seed"), [(4, 10, 0.4, 0), (20, 10, 0.1, 3), (50, 7, 0.3, 5)])
def test_rows_are_dealt_out_as_flwr_datasets_deals_them(clients, classes, alpha, seed):
    keys = np.random.default_rng(seed).integers(classes, size=1797)
    theirs = flower.DirichletPartitioner(clients, "key", alpha, 2, shuffle=False, seed=seed)
    for ours, asked in ((Dirichlet(alpha), theirs), (Iid(), flower.IidPartitioner(clients))):
        expected = _ask(ours, asked, keys, clients)
        for mine, his in zip(ours.divide(keys, clients, 2, seed), expected, strict=True):
            assert mine.tolist() == his.tolist()


@pytest.mark.parametrize("owners", [3, 12])
def test_owners_get_their_rows_as_flwr_datasets_deals_them(owners):
    keys = np.random.default_rng(owners).integers(owners, size=300)
    expected = _ask(Natural(), flower.NaturalIdPartitioner("key"), keys, owners)
    for mine, his in zip(Natural().divide(keys, owners, 2, 0), expected, strict=True):
        assert mine.tolist() == his.tolist()


def test_the_digits_are_those_of_scikit_learn():
    arrays, theirs = sources.read_digits(), load_digits()
    assert (arrays.train.inputs[..., 0] == theirs.images).all()
    assert (arrays.train.labels == theirs.target).all()
