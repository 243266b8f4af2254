"""AD-PSGD, A2CiD2 and DSpodFL: the papers' equations, recomputed with plain numpy beside a simulated world."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from pushcen.codec import Payload
from pushcen.config import Config
from pushcen.errors import ModelError, OptionError
from pushcen.folder import Folder
from pushcen.learning import Learner, Task, TrainingOptions, Update, Work
from pushcen.methods import A2Cid2, AdPsgd, DSpodFL, Place, method_named
from pushcen.methods.a2cid2 import constants
from pushcen.protocol import ANSWER, UNIT, name_of
from pushcen.simulation import (
    ComputeOptions,
    ExecutorOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    Quiet,
)
from pushcen.simulation.engine import Engine
from pushcen.simulation.exchange import Exchanges
from pushcen.simulation.executors import Host, MakeLearner, start
from pushcen.simulation.network import SimulatedNetwork
from pushcen.simulation.run import Simulation
from tests.learning.tasks import tiny_data
from tests.learning.test_save import same, through_json
from tests.methods import softmax
from tests.methods.softmax import CLASSES, INPUTS, TRAINING, displacement
from tests.simulation.worlds import norm_task, run, world
from tests.simulation.worlds import plain as plain_summary

CLIENTS = 6
METHODS = (AdPsgd(), A2Cid2(), DSpodFL())
UNEVEN = ComputeOptions(kind="classes", classes=(1.0, 1.5, 3.1))
STILL = replace(TRAINING, lr=1e-30)
GRAPH = NeighbourOptions(kind="graph", degree=2, rewire=0.5)
FAULTS = NetworkOptions(latency=0.03, jitter=0.1, loss=0.2, duplicate=0.2, reorder=0.2, hold=0.1)


def begins_with(client):
    return softmax.start() + 0.1 * np.random.default_rng(500 + client).standard_normal(CLASSES * INPUTS + CLASSES)


def task(client, clients):
    model = torch.nn.Linear(INPUTS, CLASSES)
    row = torch.tensor(begins_with(client))
    with torch.no_grad():
        model.weight.copy_(row[: CLASSES * INPUTS].view(CLASSES, INPUTS))
        model.bias.copy_(row[CLASSES * INPUTS :])
    inputs, labels = softmax.samples(client)
    return Task(model, (torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)))


@pytest.fixture
def watched(monkeypatch):
    """Runs a world; gives its models, its summary, and what happened in it, in order."""
    log = []

    def noted(kind, name, what):
        method = getattr(kind, name)

        def wrapped(self, node, *rest):
            log.append((what, getattr(self, "_engine", self).now, node.index, *rest))
            return method(self, node, *rest)

        monkeypatch.setattr(kind, name, wrapped)

    noted(Exchanges, "begin", "begin")
    noted(Engine, "train", "train")
    noted(Exchanges, "received", "received")
    noted(SimulatedNetwork, "send", "send")

    def watch(method, workers=1, **options):
        log.clear()
        options = {"clients": CLIENTS, "horizon": 2.5, "compute": UNEVEN, "training": TRAINING} | options
        made = world(method, workers, **options)
        host = Host(MakeLearner(task, method, made.training, made.clients, made.seed))
        executor = start(made.executor, host)
        try:
            simulation = Simulation(made, executor, Folder(None), Quiet(), None)
            summary = simulation.go()
        finally:
            executor.close()
        models = np.stack([row_of(host.learners[client].model) for client in range(made.clients)])
        return models, summary, list(log), simulation.engine

    return watch


def row_of(model):
    return torch.cat([tensor.detach().flatten() for tensor in model.parameters()]).double().numpy()


def events_of(log):
    """The compute events: when, whose, and who was asked."""
    found = []
    for what, now, client, *rest in log:
        if what == "train":
            found.append((now, client, []))
        elif what == "send" and rest[0][0].part == 0:
            found[-1][2].extend(int(name_of(envelope.receiver)) for envelope in rest[0])
    return found


def mean_rate(seed=3):
    return np.mean([1 / UNEVEN.pace(client, 1, seed) for client in range(CLIENTS)])


def pairs_of(engine):
    graph = nx.Graph()
    graph.add_edges_from((int(a), int(b)) for a, others in engine.neighbours.edges.items() for b in others)
    return graph


@pytest.mark.parametrize("kind", ["random", "graph"])
def test_ad_psgd_averages_with_one_neighbour_and_adds_what_it_trained_from_the_model_before(watched, kind):
    models, summary, log, _ = watched(AdPsgd(), neighbours=replace(GRAPH, kind=kind))
    x = np.stack([begins_with(client) for client in range(CLIENTS)])
    read = x.copy()  # what each worker read when it began to compute
    for _, i, partners in events_of(log):
        [j] = partners
        x[i] = x[j] = (x[i] + x[j]) / 2
        x[i] = x[i] + displacement(read[i], i)
        read[i] = x[i].copy()
    assert summary["exchanges"]["completed"] == summary["steps"] > 60
    np.testing.assert_allclose(models, x, atol=2e-5)
    assert np.abs(models - models.mean(0)).max() > 1e-3  # they are not all the same


def chis(engine):
    """chi_1 and chi_2 of the graph whose edges weigh how often they are used, by networkx."""
    edges = engine.neighbours.edges
    graph = nx.Graph()
    graph.add_nodes_from(edges)
    for a, others in edges.items():
        for b in others:
            before = graph.get_edge_data(a, b, {"weight": 0.0})["weight"]
            graph.add_edge(a, b, weight=before + 1 / len(others))
    resistances = [nx.resistance_distance(graph, a, b, weight="weight", invert_weight=False) for a, b in graph.edges]
    return 1 / nx.laplacian_spectrum(graph)[1], max(resistances) / 2


@pytest.mark.parametrize("graph", ["star", "ring", "small-world"])
def test_a2cid2_mixes_two_models_as_time_goes_on(watched, graph):
    models, summary, log, engine = watched(A2Cid2(), neighbours=replace(GRAPH, graph=graph))
    chi_1, chi_2 = chis(engine)
    eta, a = 1 / (2 * math.sqrt(chi_1 * chi_2)), math.sqrt(chi_1 / chi_2) / 2
    assert constants(engine.neighbours.edges) == pytest.approx((eta, a), rel=1e-9)
    rate, last = mean_rate(), np.zeros(CLIENTS)
    x = np.stack([begins_with(client) for client in range(CLIENTS)])
    z, read = x.copy(), x.copy()

    def wait(i, now):
        passed = (now - last[i]) * rate
        flow = torch.matrix_exp(torch.tensor([[-eta, eta], [eta, -eta]], dtype=torch.float64) * passed).numpy()
        x[i], z[i], last[i] = flow[0, 0] * x[i] + flow[0, 1] * z[i], flow[1, 0] * x[i] + flow[1, 1] * z[i], now

    for now, i, [j] in events_of(log):
        wait(i, now)
        wait(j, now)
        d = x[i] - x[j]
        z[i], z[j] = z[i] - a * d, z[j] + a * d
        x[i], x[j] = x[i] - d / 2, x[j] + d / 2
        step = displacement(read[i], i)
        x[i], z[i] = x[i] + step, z[i] + step
        read[i] = x[i].copy()
    assert summary["exchanges"]["completed"] == summary["steps"]
    np.testing.assert_allclose(models, x, atol=5e-5)
    assert np.abs(x - z).max() > 1e-3


@pytest.mark.parametrize("graph", ["star", "ring", "small-world"])
def test_dspodfl_draws_each_edge_once_and_weighs_it_by_degrees(watched, graph):
    models, summary, log, engine = watched(DSpodFL(), neighbours=replace(GRAPH, graph=graph))
    pairs = pairs_of(engine)
    w = np.stack([begins_with(client) for client in range(CLIENTS)])
    read = w.copy()
    used, could = 0, 0
    for _, i, partners in events_of(log):
        mixed = w.copy()
        for j in partners:
            beta = 1 / (1 + max(pairs.degree[i], pairs.degree[j]))
            mixed[i] += beta * (w[j] - w[i])
            mixed[j] += beta * (w[i] - w[j])
        mixed[i] += displacement(read[i], i)
        w = mixed
        read[i] = w[i].copy()
        used, could = used + len(partners), could + len(engine.neighbours.edges[str(i)])
    np.testing.assert_allclose(models, w, atol=2e-5)
    assert summary["exchanges"]["completed"] == used
    assert 0.35 < used / could < 0.65  # drawn with a chance of 0.5


def replayed(log, share, lead, eta):
    """Follow every message: who moved when, by which difference."""
    rate, last = mean_rate(), np.zeros(CLIENTS)
    x = np.stack([begins_with(client) for client in range(CLIENTS)])
    z, read, asks, questions, answers = x.copy(), x.copy(), {}, {}, {}
    for what, now, i, *rest in log:
        if what in ("begin", "train", "received"):
            half = (1 - math.exp(-2 * eta * (now - last[i]) * rate)) / 2
            x[i], z[i], last[i] = x[i] + half * (z[i] - x[i]), z[i] + half * (x[i] - z[i]), now
        if what == "begin":
            read[i] = x[i].copy()
        elif what == "train":
            asks[i], step = x[i].copy(), displacement(read[i], i)
            x[i], z[i] = x[i] + step, z[i] + step
        elif what == "send" and rest[0][0].part == 0:
            questions[i, rest[0][0].sequence] = asks[i]
        elif what == "received":
            j, sequence = int(name_of(rest[0].sender)), rest[0].sequence
            if rest[0].part == 0:
                d = answers[j, i, sequence] = questions[j, sequence] - x[i]
            else:
                d = -answers.pop((i, j, sequence))
            x[i], z[i] = x[i] + share(i, j) * d, z[i] + lead * d
    return x, len(answers)


@pytest.mark.parametrize("network", [NetworkOptions(latency=0.25), FAULTS], ids=["late", "loss, copies, wrong order"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_whoever_is_busy_moves_by_the_difference_of_what_was_sent(watched, method, network):
    models, summary, log, engine = watched(method, neighbours=GRAPH, network=network, workers=3)
    pairs = pairs_of(engine)
    eta, lead = constants(engine.neighbours.edges) if method.name == "a2cid2" else (0.0, 0.0)

    def share(i, j):
        return 1 / (1 + max(pairs.degree[i], pairs.degree[j])) if method.name == "dspodfl" else 0.5

    expected, open_answers = replayed(log, share, lead, eta)
    np.testing.assert_allclose(models, expected, atol=1e-4)
    counts = summary["exchanges"]
    assert counts["answered"] - counts["completed"] == open_answers
    assert counts["answered"] > counts["completed"] > 20
    assert (counts["half"] > 0) == (network.loss > 0)
    assert (counts["asked"] > counts["answered"]) == (network.loss > 0) or not network.loss


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_sum_of_all_models_is_kept_until_an_answer_is_lost(watched, method):
    whole = sum(begins_with(client) for client in range(CLIENTS))
    options = {"neighbours": GRAPH, "training": STILL, "horizon": 4.0}
    for network in (NetworkOptions(), NetworkOptions(loss=0.3)):
        models, summary, *_ = watched(method, network=network, **options)
        half = summary["exchanges"]["half"]
        off = np.abs(models.sum(0) - whole).max()
        if network.loss:
            assert half > 10
            assert off > 0.01  # the models still meet, but elsewhere
        else:
            assert half == 0
            assert off < 1e-4
            assert np.abs(models - models.mean(0)).max() < 0.01 * np.abs(models).max()


def test_a_lost_question_moves_nobody_and_a_lost_answer_one_of_two(watched):
    _, summary, log, _ = watched(AdPsgd(), network=NetworkOptions(loss=0.4), training=STILL)
    counts, traffic = summary["exchanges"], summary["traffic"]
    assert traffic["messages_sent"] == counts["asked"] + counts["answered"]
    assert traffic["messages_lost"] == counts["asked"] - counts["completed"]
    assert counts["half"] == counts["answered"] - counts["completed"] > 0
    received = [rest[0].part for what, _, _, *rest in log if what == "received"]
    assert (received.count(0), received.count(ANSWER)) == (counts["answered"], counts["completed"])


def test_both_halves_are_counted_in_bytes_as_pushes_are():
    size = 56 + 4 * (6 * 8 + 8 + 8 * 2 + 2)
    for method in METHODS:
        summary = run(method=method, neighbours=GRAPH, horizon=3.0)
        traffic, asked = summary["traffic"], summary["exchanges"]["asked"]
        assert traffic["messages_sent"] == 2 * asked
        assert traffic["bytes_sent"] == traffic["bytes_received"] == 2 * asked * size
        assert summary["meters"]["traffic"]["bytes_per_push"] == 2 * asked * size / summary["steps"]
    assert "exchanges" not in run(horizon=1.0)


EVERYTHING = {
    "network": NetworkOptions(latency=0.1, jitter=0.2, loss=0.1, notice="doubt", duplicate=0.1),
    "participation": ParticipationOptions(
        delayed=0.25, earliest=1, latest=2, churn=0.25, stay=1, away=0.5, crashes=0.25, between=1
    ),
}


@pytest.mark.parametrize(
    "training", [TrainingOptions(batch=16, lr=1e-2, batch_norm=kind) for kind in ("local", "shared")]
)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_worlds_with_all_faults_are_the_same_on_any_number_of_threads_and_learn(method, training):
    options = {"neighbours": GRAPH, "function": norm_task, "horizon": 6.0, "training": training, **EVERYTHING}
    found = [run(method=method, workers=workers, **options) for workers in (1, 3)]
    assert plain_summary(found[0]) == plain_summary(found[1])
    assert found[0]["failures"]["events"] == 0
    assert found[0]["final"]["accuracy"] > 0.7
    assert found[0]["exchanges"]["half"] > 0


@pytest.mark.parametrize("farewell", [True, False])
def test_clients_that_come_and_go_and_come_again_are_asked_and_answer(farewell):
    away = ParticipationOptions(churn=0.5, stay=0.7, away=0.3, farewell=farewell)
    counts = run(method=AdPsgd(), participation=away, network=NetworkOptions(latency=0.2), horizon=8.0)["exchanges"]
    assert counts["completed"] > 50
    assert counts["half"] > 0


def learner_of(method, client=0, training=None):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 4))
    training = training or TrainingOptions(batch=8, lr=0.05, optimiser="sgd", batch_norm="shared")
    torch.manual_seed(client)
    for layer in model:
        layer.reset_parameters()
    return Learner(Task(model, tiny_data(client)), method.update(), training, client=str(client), seed=client)


def tiny_row(learner):
    return torch.cat([tensor.detach().flatten().float() for tensor in learner.schema.tensors(learner.model)])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_an_event_saved_while_others_move_the_model_goes_on_bit_for_bit(method):
    one, other = learner_of(method), learner_of(method, 1)
    one.step(Work(UNIT, []), encode=False)
    one.take()
    answer = one.update.answer(other.encode()[0], 0.5, 0.7)
    other.update.hear(answer[ANSWER], 0.5, 0.7)
    again = learner_of(method, 0)
    again.restore(through_json(one.save()))
    for learner in (one, again):
        learner.update.wait(3.0, 0.2)
        learner.outcome = learner.step(Work(UNIT, []), encode=False)
    same(one.save(), again.save())
    assert one.outcome.flops == again.outcome.flops


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_statistics_of_batch_norm_stay_possible_whatever_answers_say(method):
    one, other = learner_of(method), learner_of(method, 1)
    one.model[1].running_var.fill_(100.0)
    asked = one.encode()
    one.model[1].running_var.fill_(1.0)  # by training meanwhile
    one.take()
    answer = other.update.answer(asked[0], 0.5, 0.7)
    assert float(other.model[1].running_var.min()) == pytest.approx(50.5)
    one.update.hear(answer[ANSWER], 0.5, 0.7)
    one.update.wait(2.0, 1.0)
    one.step(Work(UNIT, []), encode=False)
    assert float(one.model[1].running_var.min()) > 0


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_an_event_that_diverges_leaves_what_others_made_of_the_model(method):
    wild = TrainingOptions(batch=8, lr=1e30, optimiser="sgd", batch_norm="shared")
    one, other = learner_of(method, training=wild), learner_of(method, 1)
    one.take()
    one.update.answer(other.encode()[0], 0.5, 0.7)
    moved, second = tiny_row(one), getattr(one.update, "second", torch.zeros(1)).clone()
    for encode in (False, True):
        outcome = one.attempt(Work(UNIT, []), encode=encode)
        assert "0, event" in outcome.failure
        assert torch.equal(tiny_row(one), moved)
        assert torch.equal(getattr(one.update, "second", torch.zeros(1)), second)
        one.take()


def test_a_model_that_is_kept_apart_moves_when_an_event_begins_and_when_it_ends():
    one, other, plain = learner_of(AdPsgd()), learner_of(AdPsgd(), 1), learner_of(AdPsgd())
    one.update.keep_apart()
    before, question = tiny_row(one), other.encode()[0]
    answers = [learner.update.answer(question, 0.5)[ANSWER].data for learner in (one, plain)]
    assert answers[0] == answers[1]
    assert torch.equal(tiny_row(one), before)
    for learner in (one, plain):
        learner.take()
        learner.update.hear(learner_of(AdPsgd(), 2).update.answer(question, 0.25)[ANSWER], 0.25)  # in the middle of it
        learner.step(Work(UNIT, []))
    assert torch.equal(tiny_row(one), tiny_row(plain))
    saved = one.save()
    one.update.answer(question, 0.5)
    assert torch.equal(tiny_row(one), tiny_row(plain))
    one.restore(saved)
    assert torch.equal(one.update.worth(), tiny_row(plain))


def test_a_run_bears_clients_whose_weights_explode():
    wild = TrainingOptions(batch=16, lr=1e17, optimiser="sgd", momentum=0.0)
    for method in METHODS:
        summary = run(method=method, neighbours=GRAPH, horizon=3.0, training=wild)
        assert summary["failures"]["events"] > 0
        assert summary["status"] == "finished"


def test_an_answer_that_could_not_be_sent_moves_nobody():
    one, other = learner_of(AdPsgd()), learner_of(AdPsgd(), 1)
    for learner, value in ((one, 2.0**57), (other, -(2.0**60))):
        for parameter in learner.model.parameters():
            torch.nn.init.constant_(parameter, value)
    question, before = one.encode()[0], tiny_row(other)
    with pytest.raises(ModelError, match="must be finite and at most"):
        other.update.answer(question, 0.5)
    assert torch.equal(tiny_row(other), before)


def test_a_method_of_ones_own_that_asks_must_be_able_to_answer():
    class Plain(AdPsgd):
        def update(self):
            return Update()

    class Unsaid(AdPsgd):
        exchanges = False

    for method in (Plain(), Unsaid()):
        with pytest.raises(OptionError, match="must have exchanges = True and an ExchangeUpdate"):
            run(method=method)


def test_an_event_that_is_broken_off_leaves_no_trace():
    one, other = learner_of(AdPsgd()), learner_of(AdPsgd(), 1)
    one.take()
    one.update.answer(other.encode()[0], 0.5, 0.0)
    one.put_back()
    straight = learner_of(AdPsgd())
    straight.model.load_state_dict(one.model.state_dict())
    for learner in (one, straight):
        learner.take()
        learner.step(Work(UNIT, []), encode=False)
    assert torch.equal(tiny_row(one), tiny_row(straight))


def test_questions_and_answers_are_checked_like_any_payload():
    one, other = learner_of(AdPsgd()), learner_of(AdPsgd(), 1)
    data = one.update.answer(Payload.parse(other.encode()[0].data, one.schema), 0.5, 0.0)[ANSWER].data
    assert len(data) == one.sizes()[ANSWER] == one.sizes()[0]
    assert Payload.parse(data, one.schema).codec == one.update.codecs()[ANSWER]


WRONG = [
    ("a2cid2", {"neighbours": {"kind": "random"}}, "neighbours.kind = 'random': a2cid2 needs a fixed graph"),
    ("dspodfl", {"neighbours": {"kind": "view"}}, "neighbours.kind = 'view': dspodfl needs a fixed graph"),
    (
        "ad-psgd",
        {"network": {"bandwidth": 9.0, "backlog": False}},
        "network.backlog = False: ad-psgd needs every answer to be sent; must be True",
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG, ids=[f"{name} {o}" for name, o, _ in WRONG])
def test_a_world_that_a_method_cannot_live_in_is_refused_by_the_setting(name, options, message):
    with pytest.raises(OptionError, match=message):
        Config.of({"method": name, **options})


def test_graphs_that_will_not_do_are_refused():
    for name in ("a2cid2", "dspodfl"):
        method = method_named(name)()
        assert Config.of({"method": name}).neighbours.kind == "graph"
        with pytest.raises(OptionError, match="needs a fixed graph"):
            method.rules(Place("a"))
        with pytest.raises(OptionError, match="neighbours: b pushes to nobody"):
            method.rules(Place("b", {"a": ("b",), "b": ()}))
    for chance in (0, 1.5, "often"):
        with pytest.raises(OptionError, match=r"chance = .*must be a number, above 0 and at most 1"):
            DSpodFL(chance=chance)
    apart = {"a": ("b",), "b": ("a",), "c": ("d",), "d": ("c",)}
    with pytest.raises(OptionError, match="neighbours: the graph falls apart"):
        A2Cid2().rules(Place("a", apart))
    assert DSpodFL().rules(Place("a", apart)).outbox.shares == {"b": 0.5}


def test_one_client_alone_trains():
    for method in METHODS:
        summary = run(method=method, neighbours=NeighbourOptions(kind="graph"), clients=1, horizon=4.0)
        assert summary["final"]["accuracy"] > 0.7
        assert summary["exchanges"]["asked"] == 0


def test_an_executor_of_one_worker_and_of_several_make_the_same_models(watched):
    one, *_ = watched(A2Cid2(), neighbours=GRAPH, network=FAULTS, executor=ExecutorOptions(workers=1))
    several, *_ = watched(A2Cid2(), neighbours=GRAPH, network=FAULTS, executor=ExecutorOptions(workers=3, ahead=4))
    assert np.array_equal(one, several)
