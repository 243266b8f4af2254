"""RASGP and quantized push-sum: the papers' algorithms, recomputed with plain numpy, under faults they must survive."""

from random import Random

import numpy as np
import pytest
import torch

from pushcen.codec import Payload, decode_row
from pushcen.config import Config
from pushcen.errors import OptionError
from pushcen.learning import Learner, Model, TrainingOptions, Work
from pushcen.methods import Place, QuantizedPushSum, Rasgp
from pushcen.protocol import UNIT
from pushcen.simulation import NeighbourOptions, NetworkOptions
from tests.learning.tasks import tiny_learner
from tests.learning.test_save import same, through_json
from tests.methods.softmax import client_of, displacement, event, numbers, start
from tests.simulation.worlds import norm_task, run
from tests.simulation.worlds import plain as plain_summary

EDGES = {"0": ("1", "2"), "1": ("2",), "2": ("3", "0", "4"), "3": ("0",), "4": ("3", "1")}
GRAPH = NeighbourOptions(kind="graph", graph="exponential")


class Robust:
    """Spiridonoff, Olshevsky and Paschalidis, Algorithm 2, node by node; what is in the inbox is read on waking up."""

    def __init__(self):
        self.x = {i: start() for i in EDGES}
        self.y = dict.fromkeys(EDGES, 1.0)
        self.phi = {i: (0.0 * start(), 0.0, 0) for i in EDGES}  # sums of x and of y, and when they were sent
        self.rho = {(i, j): (0.0 * start(), 0.0, 0) for i in EDGES for j in EDGES[i]}
        self.inbox = {i: [] for i in EDGES}

    def wake(self, i):
        for sender, message in self.inbox[i]:
            x, y, stamp = self.rho[sender, i]
            if message[2] > stamp:
                self.x[i] = self.x[i] + message[0] - x
                self.y[i] += message[1] - y
                self.rho[sender, i] = message
        self.inbox[i] = []
        self.x[i] = self.x[i] + displacement(self.x[i] / self.y[i], int(i))
        parts = len(EDGES[i]) + 1
        x, y, stamp = self.phi[i]
        self.phi[i] = x + self.x[i] / parts, y + self.y[i] / parts, stamp + 1
        self.x[i], self.y[i] = self.x[i] / parts, self.y[i] / parts


def push(clients, i):
    return event(clients[i], [clients[j] for j in EDGES[i]])


@pytest.mark.parametrize("faults", ["none", "loss", "delay", "loss, delay, copies, the wrong order"])
def test_rasgp_is_the_papers_algorithm_whatever_the_network_does(faults):
    draw = Random(faults)
    clients = {i: client_of(int(i), Rasgp(), EDGES) for i in EDGES}
    plain, under_way = Robust(), []
    for _ in range(150):
        i = draw.choice([*EDGES])
        envelopes = push(clients, i)
        plain.wake(i)
        update = clients[i].learner.update
        assert update.y == pytest.approx(plain.y[i])
        np.testing.assert_allclose(update.x, plain.x[i], atol=2e-5)
        np.testing.assert_allclose(numbers(clients[i]), plain.x[i] / plain.y[i], atol=2e-5 / plain.y[i])
        under_way += [(j, envelopes[int(j)], (i, plain.phi[i])) for j in EDGES[i]]
        if "order" in faults:
            draw.shuffle(under_way)
        held = draw.randrange(6) if "delay" in faults else 0
        arriving, under_way = under_way[held:], under_way[:held]
        for j, envelope, message in arriving:
            if "loss" in faults and draw.random() < 0.5:
                continue
            for _ in range(1 + ("copies" in faults and draw.random() < 0.3)):
                clients[j].receive(envelope)
                plain.inbox[j].append(message)


def test_rasgp_loses_nothing_when_half_of_all_messages_are_lost():
    """After a last round in which everything arrives, all mass is held by somebody, and so is every numerator."""
    draw, made = Random(1), np.zeros_like(start())
    clients = {i: client_of(int(i), Rasgp(), EDGES) for i in EDGES}
    for turn in range(120):
        i = draw.choice([*EDGES]) if turn < 110 else str(turn % 5)
        work = clients[i].begin()
        clients[i].learner._merge(work)
        made += displacement(numbers(clients[i]), int(i))
        outcome = clients[i].step(work._replace(models=[], senders=[]))
        for envelope in clients[i].finish([clients[j].peer.contact for j in EDGES[i]], outcome.payloads):
            if turn >= 110 or draw.random() < 0.5:
                clients[envelope.receiver[0]].receive(envelope)
    for one in clients.values():
        one.learner._merge(one.begin())
    updates = [one.learner.update for one in clients.values()]
    assert sum(update.y for update in updates) == pytest.approx(5, abs=1e-12)
    np.testing.assert_allclose(sum(update.x for update in updates), 5 * start() + made, atol=1e-4)


def test_what_float32_rounds_off_rasgps_sums_stays_with_the_sender():
    update = client_of(0, Rasgp(), EDGES).learner.update
    whole = update.x.clone()
    for _ in range(30):
        update.push(2)
        np.testing.assert_allclose(update.x + 2 * update.sent.double(), whole, rtol=0, atol=1e-13)
        assert update.y + 2 * update.sent_mass == pytest.approx(1, abs=1e-15)


class Quantized:
    """Taheri et al., Algorithm 2: replicas of x at every receiver, q = Q(x - r); a message moves r / (d + 1)."""

    def __init__(self, compress):
        self.x = {i: start() for i in EDGES}
        self.y = dict.fromkeys(EDGES, 1.0)
        self.own = {i: 0 * start() for i in EDGES}
        self.replicas = {(i, j): 0 * start() for i in EDGES for j in EDGES[i]}
        self.inbox = {i: [] for i in EDGES}
        self.compress = compress

    def wake(self, i, message):
        for sender, (q, y) in self.inbox[i]:
            replica = self.replicas[sender, i] = self.replicas[sender, i] + q
            self.x[i] = self.x[i] + replica / (len(EDGES[sender]) + 1)
            self.y[i] += y / (len(EDGES[sender]) + 1)
        self.inbox[i] = []
        self.x[i] = self.x[i] + displacement(self.x[i] / self.y[i], int(i))
        degree = len(EDGES[i])
        q = self.compress(self.x[i] - self.own[i], message, degree + 1)
        self.own[i] = self.own[i] + q
        for j in EDGES[i]:
            self.inbox[j].append((i, (q, self.y[i])))
        self.x[i] = self.x[i] - self.own[i] * degree / (degree + 1)
        self.y[i] /= degree + 1


def sent(difference, message, parts):
    """What a message says, which must be nearer to the difference than nothing is."""
    found = parts * decode_row(message).double().numpy()
    assert np.linalg.norm(found - difference) < 0.95 * np.linalg.norm(difference)
    return found


@pytest.mark.parametrize("codec", ["dense", "centroids"])
def test_quantized_push_sum_is_the_papers_algorithm_message_by_message(codec):
    draw = Random(codec)
    clients = {i: client_of(int(i), QuantizedPushSum(codec=codec), EDGES) for i in EDGES}
    plain = Quantized(sent)
    for _ in range(60):
        i = draw.choice([*EDGES])
        envelopes = push(clients, i)
        plain.wake(i, next(iter(envelopes.values())).payload[0])
        update = clients[i].learner.update
        np.testing.assert_allclose(update.x, plain.x[i], atol=2e-4)
        assert update.y == pytest.approx(plain.y[i])
        np.testing.assert_allclose(update.replica * (len(EDGES[i]) + 1), plain.own[i], atol=2e-4)
        for j, envelope in envelopes.items():
            clients[str(j)].receive(envelope)
    assert np.ptp([*plain.y.values()]) > 0.1


@pytest.mark.parametrize("codec", ["centroids", "lean"])
def test_all_replicas_of_a_client_are_the_same_to_the_last_bit(codec):
    draw = Random(2)
    clients = {i: client_of(int(i), QuantizedPushSum(codec=codec), EDGES) for i in EDGES}
    for turn in range(80):
        for j, envelope in push(clients, draw.choice([*EDGES]) if turn < 75 else str(turn % 5)).items():
            clients[str(j)].receive(envelope)
    for one in clients.values():
        one.learner._merge(one.begin())
    for i in EDGES:
        for j in EDGES[i]:
            assert torch.equal(clients[i].learner.update.replica, clients[j].learner.update._replicas[i])
    assert sum(one.learner.update.y for one in clients.values()) == pytest.approx(5, abs=1e-12)


def test_a_replica_comes_nearer_to_a_model_that_stands_still():
    update, far = client_of(0, QuantizedPushSum(), EDGES).learner.update, []
    share = update.x.clone() / 3
    for _ in range(4):
        update.x, update.y = 3 * share, 1.0
        update.push(2)
        far.append(float((share - update.replica).norm()))
    assert far[1] < far[0] / 2


@pytest.mark.parametrize("method", [Rasgp(), QuantizedPushSum()], ids=lambda method: type(method).name)
def test_a_saved_client_goes_on_bit_for_bit(method):
    other = client_of(3, method, EDGES)
    learner, again = (client_of(0, method, EDGES).learner for _ in range(2))
    work = Work(UNIT // 3, [Model(UNIT, 0, other.step(other.begin()).payloads)], senders=["3"])
    learner.step(work)
    again.restore(through_json(learner.save()))
    same(again.save(), learner.save())
    ends = [one.step(work) for one in (learner, again)]
    assert ends[0].payloads[0].data == ends[1].payloads[0].data
    same(again.save(), learner.save())


@pytest.mark.parametrize("method", [Rasgp(), QuantizedPushSum()], ids=lambda method: type(method).name)
def test_an_event_that_fails_pushes_what_was_there_before_and_replicas_stay_true(method):
    clients = {i: client_of(int(i), method, EDGES) for i in EDGES}
    one, sender = clients["2"], clients["1"]
    data = one.learner.task.train[0]
    kept = data.clone()
    for turn in range(3):
        for envelope in push(clients, "1").values():
            one.receive(envelope)
        data[:] = float("nan") if turn == 1 else kept
        outcome = one.learner.attempt(one.begin())
        assert bool(outcome.failure) == (turn == 1)
        assert torch.isfinite(decode_row(outcome.payloads[0])).all()
        for envelope in one.finish([clients[j].peer.contact for j in EDGES["2"]], outcome.payloads):
            clients[envelope.receiver[0]].receive(envelope)
    if isinstance(method, QuantizedPushSum):
        assert torch.equal(sender.learner.update.replica, one.learner.update._replicas["1"])
        clients["0"].learner._merge(clients["0"].begin())
        assert torch.equal(one.learner.update.replica, clients["0"].learner.update._replicas["2"])
    else:
        everything = sum(each.learner.update.y for each in (one, sender))
        on_links = 3 * one.learner.update.sent_mass + sender.learner.update.sent_mass
        assert everything + on_links - one.learner.update._masses["1"] == pytest.approx(2)


@pytest.mark.parametrize("method", [Rasgp(), QuantizedPushSum()], ids=lambda method: type(method).name)
def test_statistics_of_batch_norm_are_not_divided_by_the_mass(method):
    """A variance that moved by a multiple of its change could become negative."""

    def after(mass):
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
        with torch.no_grad():
            for number, tensor in enumerate([*model.parameters(), *model.buffers()]):
                tensor.copy_(torch.linspace(0.1, 1, tensor.numel()).view(tensor.shape) + number)
        learner = tiny_learner(method, model=model, training=TrainingOptions(batch=8, batch_norm="shared"))
        learner.update.x *= mass
        learner.update.y = mass
        learner.step(Work(UNIT // 3, []))
        return learner.model[1].running_var.clone(), learner.model[0].weight.detach().clone()

    (one, weights), (little, farther) = after(1.0), after(0.1)
    assert torch.allclose(one, little, atol=1e-4)
    assert not torch.allclose(weights, farther)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (Rasgp(), {"network": NetworkOptions(loss=0.3, latency=0.2, jitter=0.5, duplicate=0.2, reorder=0.3)}),
        (QuantizedPushSum(), {"network": NetworkOptions(latency=0.2)}),
        (QuantizedPushSum(codec="lean"), {"collect": "start"}),
    ],
    ids=["rasgp, everything", "quantized, late", "quantized lean, collected at the start"],
)
def test_worlds_give_the_same_bytes_on_any_number_of_threads_and_learn(method, options):
    found = [
        run(method=method, neighbours=GRAPH, workers=n, function=norm_task, horizon=5.0, **options) for n in (1, 3)
    ]
    assert plain_summary(found[0]) == plain_summary(found[1])
    assert found[0]["failures"]["events"] == 0
    assert found[0]["final"]["accuracy"] > 0.7


def test_bytes_are_those_of_the_numbers_and_a_mass():
    sizes = {}
    for method in (Rasgp(), QuantizedPushSum(codec="lean"), QuantizedPushSum(codec="dense")):
        summary = run(method=method, neighbours=GRAPH, horizon=2.0)
        traffic = summary["traffic"]
        sizes[method] = traffic["bytes_sent"] // traffic["messages_sent"]
        assert traffic["bytes_sent"] % traffic["messages_sent"] == 0
    dense = 56 + 8 + 4 * (6 * 8 + 8 + 8 * 2 + 2)
    sums, lean, differences = sizes.values()
    assert sums == differences == dense > lean


WRONG = [
    ("rasgp", {"neighbours": {"kind": "random"}}, "neighbours.kind = 'random': rasgp needs a fixed graph"),
    ("rasgp", {"participation": {"delayed": 0.2}}, "participation.delayed = 0.2: rasgp needs everybody all the time"),
    ("quantized-push-sum", {"network": {"loss": 0.1}}, "network.loss = 0.1: quantized-push-sum needs every message"),
    ("quantized-push-sum", {"network": {"jitter": 0.1}}, "network.jitter = 0.1.*must be 0.0"),
    ("quantized-push-sum", {"network": {"bandwidth": 9.0, "backlog": False}}, "network.backlog = False.*must be True"),
    ("quantized-push-sum", {"participation": {"churn": 0.1}}, "participation.churn = 0.1.*must be 0.0"),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG, ids=[f"{name} {o}" for name, o, _ in WRONG])
def test_a_world_that_a_method_cannot_live_in_is_refused_by_the_setting(name, options, message):
    with pytest.raises(OptionError, match=message):
        Config.of({"method": name, **options})
    assert Config.of({"method": name}).neighbours.kind == "graph"


def test_a_client_with_nobody_to_push_to_is_refused():
    for method in (Rasgp(), QuantizedPushSum()):
        with pytest.raises(OptionError, match="neighbours: b pushes to nobody"):
            method.rules(Place("b", {"a": ("b",), "b": ()}))
        with pytest.raises(OptionError, match="needs a fixed graph"):
            method.rules(Place("b"))
        with pytest.raises(OptionError, match="the graph has no z"):
            method.rules(Place("z", EDGES))
    with pytest.raises(OptionError, match="must be one of dense, centroids, lean"):
        QuantizedPushSum(codec="with-mass")


def test_one_client_alone_trains():
    for method in (Rasgp(), QuantizedPushSum()):
        summary = run(method=method, neighbours=NeighbourOptions(kind="graph"), clients=1, horizon=4.0)
        assert summary["final"]["accuracy"] > 0.7


def test_a_payload_with_mass_is_checked_like_any_other():
    learner = client_of(0, Rasgp(), EDGES).learner
    data = learner.step(Work(UNIT // 3, [])).payloads[0].data
    assert Payload.parse(data, learner.schema).codec.mass == pytest.approx(1 / 3)
    assert isinstance(learner, Learner)
