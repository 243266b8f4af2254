"""D-PSGD, CHOCO-SGD and Moniqua: the papers' rounds, recomputed with plain numpy, however clients interleave."""

from random import Random

import numpy as np
import pytest
import torch

from pushcen.codec import decode_row
from pushcen.config import Config
from pushcen.errors import OptionError
from pushcen.methods import Choco, DPsgd, Moniqua, Place
from pushcen.protocol import UNIT, name_of
from pushcen.simulation import NeighbourOptions
from tests.learning.test_save import same, through_json
from tests.methods.softmax import client_of, displacement, event, numbers, start
from tests.simulation.worlds import norm_task, run
from tests.simulation.worlds import plain as plain_summary

EDGES = {"0": ("1", "2"), "1": ("0", "2", "3", "4"), "2": ("0", "1"), "3": ("1", "4"), "4": ("1", "3")}
N = len(EDGES)
ALL = [DPsgd(), Choco(), Choco(rounds=False), Moniqua(), Moniqua(rounds=False)]
GRAPH = NeighbourOptions(kind="graph", degree=4)


def weights():
    """Metropolis weights as a matrix, from the definition."""
    found = np.zeros((N, N))
    for i, others in EDGES.items():
        for j in others:
            found[int(i), int(j)] = 1 / (1 + max(len(EDGES[i]), len(EDGES[j])))
    return found + np.diag(1 - found.sum(1))


def rounds_of(method, count, seed):
    """Let clients act whenever they are ready, in a random order; return models and messages by round and client."""
    draw, clients = Random(seed), {i: client_of(int(i), method, EDGES) for i in EDGES}
    models, said = [{} for _ in range(count)], [{} for _ in range(count)]
    done, under_way = dict.fromkeys(EDGES, 0), []
    while min(done.values()) < count:
        ready = [i for i in EDGES if done[i] < count and clients[i].peer.ready]
        if under_way and (not ready or draw.random() < 0.6):
            envelope = under_way.pop(0)
            clients[name_of(envelope.receiver)].receive(envelope)
            continue
        i = draw.choice(ready)
        envelopes = event(clients[i], [clients[j] for j in EDGES[i]])
        models[done[i]][i] = numbers(clients[i])
        said[done[i]][i] = decode_row(next(iter(envelopes.values())).payload[0]).double().numpy()
        done[i] += 1
        under_way += envelopes.values()
    return [np.stack([of[i] for i in EDGES]) for of in models], [np.stack([of[i] for i in EDGES]) for of in said]


def displacements(models):
    return np.stack([displacement(row, client) for client, row in enumerate(models)])


def test_the_weights_are_metropolis_weights_in_whole_quanta():
    w = weights()
    assert np.allclose(w, w.T)
    for i in EDGES:
        fixed = DPsgd().rules(Place(i, EDGES)).weights
        half = Choco(gamma=0.5).rules(Place(i, EDGES)).weights
        assert fixed.own(0) / UNIT == pytest.approx(w[int(i), int(i)])
        for j in EDGES[i]:
            assert fixed.of(0, j) == UNIT // (1 + max(len(EDGES[i]), len(EDGES[j])))
            assert half.of(0, j) / UNIT == pytest.approx(w[int(i), int(j)] / 2)


@pytest.mark.parametrize("seed", range(3))
def test_d_psgd_is_the_papers_algorithm_in_whatever_order_clients_act(seed):
    models, _ = rounds_of(DPsgd(), 12, seed)
    x = np.stack([start()] * N)
    for found in models:
        x = weights() @ x + displacements(x)
        np.testing.assert_allclose(found, x, atol=2e-5)
    assert np.ptp(x, axis=0).max() > 1e-3


@pytest.mark.parametrize("codec", ["dense", "centroids", "lean"])
def test_choco_is_the_papers_algorithm_with_a_replica_at_every_neighbour(codec):
    gamma = 0.7
    models, said = rounds_of(Choco(gamma=gamma, codec=codec), 15, codec)
    w, x = weights(), np.stack([start()] * N)
    replicas = {(i, j): start() for i in range(N) for j in range(N) if w[i, j]}  # of i, at j
    for found, q in zip(models, said, strict=True):
        half = x + displacements(x)
        np.testing.assert_allclose(found, half, atol=5e-5)
        for i in range(N):
            difference = half[i] - replicas[i, i]
            near = np.linalg.norm(q[i] - difference)
            assert near < {"dense": 1e-4, "centroids": 0.95, "lean": 1.0001}[codec] * np.linalg.norm(difference)
            for j in range(N):
                if w[i, j]:
                    replicas[i, j] = replicas[i, j] + q[i]
        x = np.stack([
            half[i] + gamma * sum(w[i, j] * (replicas[j, i] - replicas[i, i]) for j in range(N) if w[i, j])
            for i in range(N)
        ])  # fmt: skip
    assert np.ptp(x, axis=0).max() > 1e-3


def test_without_rounds_choco_adds_every_message_that_has_come():
    clients = {i: client_of(int(i), Choco(rounds=False, codec="dense"), EDGES) for i in EDGES}
    w, replica = weights(), {i: start() for i in EDGES}
    for i in "3312413":
        sent = event(clients[i], [clients[j] for j in EDGES[i]])
        replica[i] = numbers(clients[i])
        for j, envelope in sent.items():
            clients[str(j)].receive(envelope)
    before = numbers(clients["1"])
    one = clients["1"]
    one.learner._merge(one.begin())
    expected = before + sum(w[1, int(j)] * (replica[j] - replica["1"]) for j in EDGES["1"])
    np.testing.assert_allclose(numbers(one), expected, atol=1e-5)


def centred(z, a):
    """z modulo a, in [-a/2, a/2)."""
    return (z + a / 2) % a - a / 2


@pytest.mark.parametrize(("bits", "theta"), [(8, 0.5), (3, 0.2), (1, 0.1)])
def test_moniqua_is_the_papers_algorithm(bits, theta):
    models, said = rounds_of(Moniqua(theta=theta, bits=bits, gamma=0.5), 12, bits)
    delta, w = 0.5 ** (bits + 1), weights() / 2
    span, x, q = 2 * theta / (1 - 2 * delta), np.stack([start()] * N), None
    for found, sent in zip(models, said, strict=True):
        moved = x + displacements(x)
        if q is not None:
            for i in range(N):
                own = q[i] * span - centred(x[i], span) + x[i]
                for j in range(N):
                    if j != i and w[i, j]:
                        moved[i] += w[i, j] * (centred(q[j] * span - x[i], span) + x[i] - own)
        np.testing.assert_allclose(found, moved, atol=3e-5)
        assert np.abs(centred(sent - moved / span, 1)).max() < delta + 1e-4
        assert np.unique(sent).size <= 2**bits
        x, q = found, sent
    assert np.ptp(x, axis=0).max() > 1e-3


@pytest.mark.parametrize("theta", [0.3, 1e-5])
@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_moniqua_knows_a_neighbour_that_is_near_and_mistakes_one_that_is_not(bits, theta):
    clients = [client_of(number, Moniqua(theta=theta, bits=bits), {"0": ("1",), "1": ("0",)}) for number in range(2)]
    update, other = (client.learner.update for client in clients)
    draw = np.random.default_rng(bits)
    mine = torch.tensor(draw.normal(0, 3, start().size))
    apart = torch.tensor(draw.uniform(-3 * theta, 3 * theta, start().size))
    apart[:4] = torch.tensor([0.0, theta * 0.999, -theta * 0.999, 0.5 * theta])
    found = update._near(decode_row(other._message(mine + apart)), mine)
    wrong = (found - mine - apart).abs()
    near, rounding = apart.abs() < theta, 0.5 ** (bits + 1) * update.span
    assert (wrong[near] <= rounding + 1e-5 * theta).all()
    far = apart.abs() > update.span / 2 + rounding
    assert bool(far.any()) == (update.span / 2 + rounding < 3 * theta)
    assert (wrong[far] > update.span - 2 * rounding).all()
    assert update.span == pytest.approx(2 * theta / (1 - 0.5**bits))


@pytest.mark.parametrize(
    "method", [DPsgd(), Choco(), Choco(codec="lean", gamma=0.3), Moniqua(theta=0.5, bits=2)], ids=str
)
def test_averaging_moves_nothing_but_by_displacements(method):
    models, _ = rounds_of(method, 8, 1)
    x = np.stack([start()] * N)
    for found in models:
        if not isinstance(method, Choco):  # whose training starts from what averaging made
            np.testing.assert_allclose(found.mean(0), (x + displacements(x)).mean(0), atol=2e-5)
        x = found
    if isinstance(method, Choco):
        clients = {i: client_of(int(i), method, EDGES) for i in EDGES}
        for _ in range(4):
            sent = [event(clients[i], [clients[j] for j in EDGES[i]]) for i in EDGES]
            for envelopes in sent:
                for j, envelope in envelopes.items():
                    clients[str(j)].receive(envelope)
        before = np.mean([numbers(one) for one in clients.values()], axis=0)
        for one in clients.values():
            one.learner._merge(one.begin())
        np.testing.assert_allclose(np.mean([numbers(one) for one in clients.values()], axis=0), before, atol=1e-6)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_a_saved_client_goes_on_bit_for_bit(method):
    clients = {i: client_of(int(i), method, EDGES) for i in EDGES}
    for i in EDGES:
        for j, envelope in event(clients[i], [clients[j] for j in EDGES[i]]).items():
            clients[str(j)].receive(envelope)
    learner, again = clients["1"].learner, client_of(1, method, EDGES).learner
    again.restore(through_json(learner.save()))
    same(again.save(), learner.save())
    work = clients["1"].begin()
    ends = [one.step(work) for one in (learner, again)]
    assert ends[0].payloads[0].data == ends[1].payloads[0].data
    same(again.save(), learner.save())


@pytest.mark.parametrize("method", [DPsgd(), Choco(), Choco(codec="lean"), Moniqua()], ids=str)
def test_an_event_that_fails_keeps_rounds_and_replicas_true(method):
    clients = {i: client_of(int(i), method, EDGES) for i in EDGES}
    data = clients["1"].learner.task.train[0]
    kept = data.clone()
    total = {i: start() for i in EDGES}  # what the others know of each: its replica
    for turn in range(4):
        data[:] = float("nan") if turn in (1, 2) else kept
        sent = []
        for i in EDGES:
            one = clients[i]
            before = numbers(one)
            outcome = one.learner.attempt(one.begin())
            assert bool(outcome.failure) == (i == "1" and turn in (1, 2))
            if outcome.failure:
                np.testing.assert_array_equal(numbers(one), before)
            sent += one.finish([clients[j].peer.contact for j in EDGES[i]], outcome.payloads)
            total[i] = total[i] + decode_row(outcome.payloads[0]).double().numpy()
        for envelope in sent:
            clients[name_of(envelope.receiver)].receive(envelope)
    if isinstance(method, Choco):
        for i, one in clients.items():
            np.testing.assert_allclose(one.learner.update.replica, total[i], atol=1e-6)
            one.learner._merge(one.begin())
            apart = sum(weights()[int(i), int(j)] * (total[j] - total[i]) for j in EDGES[i])
            np.testing.assert_allclose(one.learner.update.apart, apart, atol=1e-6)


@pytest.mark.parametrize("method", ALL, ids=str)
def test_worlds_give_the_same_bytes_on_any_number_of_threads_and_learn(method):
    found = [run(method=method, neighbours=GRAPH, workers=n, function=norm_task, horizon=6.0) for n in (1, 3)]
    assert plain_summary(found[0]) == plain_summary(found[1])
    assert found[0]["failures"]["events"] == 0
    assert found[0]["final"]["accuracy"] > 0.8
    assert (found[0]["final"].get("waiting_share", 0) > 0.1) == method.rounds


def test_bytes_are_those_of_what_is_sent():
    shared = 6 * 8 + 8 + 8 * 2 + 2
    for method, size in (
        (DPsgd(), 56 + 4 * shared),
        (Choco(codec="dense"), 56 + 4 * shared),
        (Moniqua(bits=3), 56 + -(-3 * shared // 8)),
    ):
        traffic = run(method=method, neighbours=GRAPH, horizon=2.0)["traffic"]
        assert traffic["bytes_sent"] == size * traffic["messages_sent"] > 0


WRONG = [
    ("d-psgd", {"neighbours": {"kind": "random"}}, "neighbours.kind = 'random': d-psgd needs a fixed graph"),
    ("choco", {"network": {"loss": 0.1}}, "network.loss = 0.1: choco needs every message, once and in order"),
    ("moniqua", {"network": {"reorder": 0.1}}, "network.reorder = 0.1: moniqua needs every message.*must be 0.0"),
    ("d-psgd", {"participation": {"delayed": 0.2}}, "participation.delayed = 0.2: d-psgd needs everybody"),
    (
        "choco",
        {"participation": {"trace": "t.json"}, "time_unit": "1 min"},
        "participation.trace = 't.json': choco needs",
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG, ids=[f"{name} {o}" for name, o, _ in WRONG])
def test_a_world_that_a_method_cannot_live_in_is_refused_by_the_setting(name, options, message):
    with pytest.raises(OptionError, match=message):
        Config.of({"method": name, **options})
    assert Config.of({"method": name}).neighbours.kind == "graph"


@pytest.mark.parametrize("method", ALL, ids=str)
def test_a_graph_that_does_not_fit_is_refused(method):
    with pytest.raises(OptionError, match=f"edge b -> a has no way back: {method.name} needs both directions"):
        method.rules(Place("b", {"a": ("c",), "b": ("a",), "c": ("a",)}))
    with pytest.raises(OptionError, match="neighbours: b pushes to nobody"):
        method.rules(Place("b", {"a": ("c",), "b": (), "c": ("a",)}))
    with pytest.raises(OptionError, match="needs a fixed graph"):
        method.rules(Place("b"))
    with pytest.raises(OptionError, match="no way back"):
        run(method=method, neighbours=NeighbourOptions(kind="graph", graph="ring"))
    summary = run(method=method, neighbours=GRAPH, clients=1, horizon=4.0)
    assert summary["final"]["accuracy"] > 0.7
