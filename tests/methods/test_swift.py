"""SWIFT: its coefficients by the published rule, and what they make of models."""

from fractions import Fraction
from random import Random

import networkx as nx
import pytest
import torch

from pushcen.client import Client
from pushcen.errors import OptionError
from pushcen.learning import Learner, Task, TrainingOptions, Work
from pushcen.methods import Place, Swift, SwiftRandom
from pushcen.methods.per_graph import once_per_graph
from pushcen.protocol import UNIT, Peer, name_of
from pushcen.protocol.graphs import swift_coefficients
from tests.learning.tasks import tiny_data, tiny_model


def published(edges):
    """Every client by itself, as in the paper: it waits for neighbours of larger degree, then shares the rest evenly.

    Neighbours of the same degree take the smaller of both offers. What is left is a client's own.
    """
    rows = {name: {} for name in edges}
    offers = {}
    while len(offers) < len(edges):
        for name, others in edges.items():
            larger = [other for other in others if len(edges[other]) > len(others)]
            if name in offers or any(other not in offers for other in larger):
                continue
            taken = [offers[other] for other in larger]
            offers[name] = (1 - sum(taken, Fraction(0))) / (len(others) - len(larger) + 1)
    for name, others in edges.items():
        for other in others:
            mine, theirs = len(others), len(edges[other])
            if mine == theirs:
                rows[name][other] = min(offers[name], offers[other])
            else:
                rows[name][other] = offers[name] if mine > theirs else offers[other]
    return rows


def graph(kind, n, seed=0):
    made = {
        "star": lambda: nx.star_graph(n - 1),
        "ring": lambda: nx.cycle_graph(n),
        "complete": lambda: nx.complete_graph(n),
        "random": lambda: nx.connected_watts_strogatz_graph(n, 4, 0.5, seed=seed),
        "tree": lambda: nx.random_labeled_tree(n, seed=seed),
        "hubs": lambda: nx.barabasi_albert_graph(n, 2, seed=seed),
    }[kind]()
    return {str(i): tuple(str(j) for j in sorted(made.neighbors(i))) for i in made}


GRAPHS = [(kind, n, seed) for kind in ("random", "tree", "hubs") for n in (5, 12, 40) for seed in range(3)]
GRAPHS += [(kind, n, 0) for kind in ("star", "ring", "complete") for n in (3, 4, 9)]


@pytest.mark.parametrize(("kind", "n", "seed"), GRAPHS)
def test_rows_are_the_published_ones_and_sum_to_one(kind, n, seed):
    edges = graph(kind, n, seed)
    rows = published(edges)
    for name in edges:
        weights = Swift().rules(Place(name, edges)).weights
        found = {other: weights.of(0, other) for other in edges[name]}
        assert weights.own(123) + sum(found.values()) == UNIT
        assert weights.own(123) > 0
        for other, weight in found.items():
            assert 0 <= rows[name][other] - Fraction(weight, UNIT) < Fraction(1, UNIT), "floored to whole quanta"
            assert rows[name][other] == rows[other][name]
    stranger = Swift().rules(Place("0", edges)).weights
    assert stranger.of(0, "nobody") == 0


def clients(edges, every=1):
    method, found = Swift(every=every), {}
    for name in edges:
        task = Task(tiny_model(), tiny_data(int(name)))
        learner = Learner(task, method.update(), TrainingOptions(batch=8, lr=1e-2), client=name, seed=int(name))
        rules = method.rules(Place(name, edges, learner.encode()))
        found[name] = Client(Peer.found(name, rules), learner, Random(name))
    return found


def vector(model):
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def test_a_client_averages_with_its_row_and_what_stands_is_used_again():
    edges = graph("random", 6)
    everybody, rows = clients(edges), published(edges)
    start = vector(tiny_model())
    standing = {name: dict.fromkeys(edges[name], start) for name in edges}
    for name in ["0", "1", "2", "0", "3", "0", "5", "4", "1"]:
        one = everybody[name]
        own = vector(one.learner.model)
        work = one.begin()
        row = rows[name]
        expected = float(1 - sum(row.values())) * own + sum(float(row[o]) * standing[name][o] for o in edges[name])
        one.learner._merge(work)
        torch.testing.assert_close(vector(one.learner.model), expected, rtol=0, atol=1e-6)
        outcome = one.step(Work(UNIT, []))
        for envelope in one.finish([everybody[other].peer.contact for other in edges[name]], outcome.payloads):
            everybody[name_of(envelope.receiver)].receive(envelope)
            standing[name_of(envelope.receiver)][name] = vector(one.learner.model)


def test_between_averages_a_client_trains_alone():
    edges = graph("ring", 3)
    one = clients(edges, every=3)["0"]
    merges = []
    for _ in range(6):
        work = one.begin()
        merges.append(len(work.models))
        one.finish([], one.step(work).payloads)
    assert merges == [0, 0, 2, 0, 0, 2]


def test_the_random_variant_weighs_itself_and_all_that_stands_alike():
    method = SwiftRandom(receivers=2)
    everybody = {}
    for name in "0123":
        task = Task(tiny_model(int(name)), tiny_data(int(name)))
        everybody[name] = Client(Peer.found(name, method.rules(Place(name))), Learner(task, method.update()), Random(1))
    sent = {}
    for name in "123":
        one = everybody[name]
        outcome = one.step(one.begin())
        sent[name] = vector(one.learner.model)
        [envelope] = one.finish([everybody["0"].peer.contact], outcome.payloads)
        everybody["0"].receive(envelope)
    one = everybody["0"]
    for _ in range(2):  # what stands is used again
        own = vector(one.learner.model)
        work = one.begin()
        one.learner._merge(work)
        torch.testing.assert_close(vector(one.learner.model), (own + sum(sent.values())) / 4, rtol=0, atol=1e-6)
        one.finish([], one.learner.encode())


def test_swift_needs_a_graph_that_has_the_client():
    with pytest.raises(OptionError, match=r"method\.name = 'swift': needs a fixed graph"):
        Swift().rules(Place("a"))
    with pytest.raises(OptionError, match="the graph has no z"):
        Swift().rules(Place("z", {"a": ("b",), "b": ("a",)}))
    with pytest.raises(OptionError, match="no way back"):
        Swift().rules(Place("a", {"a": ("b",), "b": ()}))


def test_the_coefficients_of_a_graph_are_worked_out_once_for_all_its_clients(monkeypatch):
    """A row at a time would make a thousand clients look at all edges a thousand times."""
    seen = []
    rows = once_per_graph(lambda edges: seen.append(edges) or swift_coefficients(edges))
    monkeypatch.setattr("pushcen.methods.swift._rows", rows)
    edges, other = graph("random", 12), graph("ring", 5)
    for name in edges:
        Swift().rules(Place(name, edges))
    assert seen == [edges]
    assert len(Swift().rules(Place("0", other)).inbox.neighbours) == 2
