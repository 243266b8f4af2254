"""Every meter against a slow and obvious way to find the same figure; and that measuring changes nothing."""

import copy
import itertools

import pytest
import torch

from pushcen.codec import decode
from pushcen.learning import TrainingOptions
from pushcen.methods import PushCen, PushSum
from pushcen.protocol import UNIT
from pushcen.simulation import (
    METERS,
    ComputeOptions,
    EvaluationOptions,
    MeterOptions,
    NetworkOptions,
    ParticipationOptions,
)
from pushcen.simulation.engine import Engine
from pushcen.simulation.executors import Host, MakeLearner
from pushcen.simulation.executors.threads import Threads
from pushcen.simulation.jobs import Build, Encode
from pushcen.simulation.reference import reference
from tests.simulation.worlds import norm_task, run, task, world


@pytest.fixture
def engine_of():
    """Engines with real learners that a test drives by hand, and the learners themselves."""
    made = []

    def make(function=task, meters=(), **options):
        whole = world(meters=MeterOptions(meters), **options)
        host = Host(MakeLearner(function, whole.method, whole.training, whole.clients, whole.seed))
        runs = Threads(host, 2)
        made.append(runs)
        facts = [runs.wait(runs.submit(client, [Build()])) for client in range(whole.clients)]
        engine = Engine(whole, runs, facts, runs.submit(0, [Encode()]))
        engine.rows = []
        engine.evaluator.write = engine.rows.append
        engine.plan()
        return engine, host.learners

    yield make
    for runs in made:
        runs.close()


def finish(engine):
    while not engine.over:
        engine.act()
    engine.collector.collect()


def row_of(learner, model=None):
    tensors = learner.schema.tensors(model or learner.model)
    return torch.cat([tensor.detach().double().flatten() for tensor in tensors])


def differing(client, clients):
    """A task whose clients start from different weights."""
    made = task(client, clients)
    draw = torch.Generator().manual_seed(client)
    with torch.no_grad():
        for tensor in made.model.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=draw))
    return made


@pytest.mark.parametrize("network", [NetworkOptions(), NetworkOptions(latency=0.7), NetworkOptions(loss=0.3)])
@pytest.mark.parametrize("collect", ["end", "start"])
def test_the_reference_does_not_move_while_nobody_learns(engine_of, network, collect):
    """Textbook push-sum keeps X_tot, wherever the mass is: at clients, in mailboxes, folded, under way."""
    options = {"network": network, "collect": collect, "training": TrainingOptions(batch=16, lr=1e-12)}
    engine, learners = engine_of(differing, method=PushSum(receivers=3, limit=2, newest_only=False), **options)
    mean = sum(row_of(learner) for learner in learners.values()) / len(learners)
    while engine.steps < 30:
        engine.act()
    found = engine.executor.product(reference(engine))
    assert sum(node.peer.evicted for node in engine.nodes) > 0
    assert torch.allclose(found, mean, atol=1e-5)
    engine.collector.collect()
    apart = [float((row_of(learner) - mean).norm()) for learner in learners.values()]
    assert max(apart) > 0.05, "clients agree already, and the test says nothing"


def test_consensus_and_gradient_are_those_of_the_reference(engine_of):
    engine, learners = engine_of(norm_task, meters=("reference", "gradient"), horizon=1.7)
    finish(engine)
    row = engine.rows[-1]
    shared = engine.executor.product(reference(engine))
    distances = [float((row_of(learner) - shared).square().sum()) for learner in learners.values()]
    assert row["consensus_error"] == pytest.approx(sum(distances) / len(distances))
    gradients, losses = [], []
    for learner in learners.values():
        model = copy.deepcopy(learner.model).double().eval()  # with the client's own BatchNorm
        with torch.no_grad():
            for (entry, place), tensor in zip(
                learner.schema.slices, learner.schema.tensors(learner.model), strict=True
            ):
                dict(model.named_parameters())[entry.name].copy_(shared[place].view(tensor.shape))
        inputs, targets = learner.task.train
        loss = torch.nn.functional.cross_entropy(model(inputs.double()), targets)
        loss.backward()
        named = dict(model.named_parameters())
        gradients.append(torch.cat([named[entry.name].grad.flatten() for entry in learner.schema.entries]))
        losses.append(loss.item())
    mean = sum(gradients) / len(gradients)
    assert row["gradient_norm2"] == pytest.approx(float(mean.square().sum()), rel=1e-3)
    assert row["reference_objective"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert row["zeta2"] == pytest.approx(max(float((g - mean).square().sum()) for g in gradients), rel=1e-3)


def test_kept_mass_shifts_by_share_times_new_minus_old(engine_of):
    method = PushSum(receivers=1, limit=2)
    engine, _ = engine_of(clients=2, method=method, meters=("kept",), compute=ComputeOptions("steps"), horizon=3.0)
    engine.nodes[1].pace = 1.0  # the other pushes several times meanwhile
    sent, expected, merged = [], [], engine.nodes[1].client.begin

    carry = engine.network.send

    def send(node, envelopes):
        if node.index == 0:
            sent.extend((node.peer.unsettled[envelope.receiver][1], envelope.payload) for envelope in envelopes)
        carry(node, envelopes)

    def begin():
        if sent:
            newest = decoded(sent[-1][1])
            expected.extend(mass * float((newest - decoded(old)).norm()) / engine.founded for mass, old in sent[:-1])
            sent.clear()
        return merged()

    def decoded(ticket):
        tensors = decode(engine.executor.product(ticket)[0])
        return torch.cat([tensor.double().flatten() for tensor in tensors.values()])

    engine.network.send, engine.nodes[1].client.begin = send, begin
    finish(engine)
    assert len(expected) > 3
    assert engine.evaluator.meters[0].summary()["kept_shift_sum"] == pytest.approx(sum(expected))


def test_mailbox_counts_are_those_of_a_plain_list(engine_of):
    engine, _ = engine_of(meters=("mailbox",), method=PushSum(receivers=4, limit=3), horizon=3.0)
    boxes = {node.index: {} for node in engine.nodes}
    counts = {"replaced": 0, "evicted": 0}

    def watch(node):
        receive, begin = node.client.receive, node.client.begin

        def receiving(envelope):
            box = boxes[node.index]
            counts["replaced"] += box.pop(envelope.sender, None) is not None
            box[envelope.sender] = True
            if len(box) > 3:
                counts["evicted"] += 1
                del box[next(iter(box))]
            return receive(envelope)

        def beginning():
            boxes[node.index] = {}
            return begin()

        node.client.receive, node.client.begin = receiving, beginning

    for node in engine.nodes:
        watch(node)
    finish(engine)
    assert counts["replaced"] > 0
    assert counts["evicted"] > 0
    assert engine.evaluator.meters[0].summary() == counts


def test_masses_of_events_are_those_worked_out_by_hand(engine_of):
    """Two clients, one after the other: 1 of 2 units is split; then 3/2 of 2 units are."""
    options = {
        "clients": 2,
        "compute": ComputeOptions("constant"),
        "method": PushSum(receivers=1, full_after=0),
        "horizon": 1.0,
    }
    engine, _ = engine_of(meters=("events",), **options)
    finish(engine)
    found = engine.evaluator.meters[0].summary()
    assert found["gamma"] == (0.5 + 0.75) / 2
    assert found["gamma_max"] == 0.75
    assert found["gamma_min"] == 0.5
    assert found["c_bar_max"] == 0.375
    assert (found["y_min"], found["y_max"]) == (0.5, 1.5)
    assert (found["tau"], found["tau_max"]) == (0.5, 1)  # the first used nothing, the second what the first had made


def test_drift_and_distortion_are_those_of_the_weights(engine_of):
    engine, learners = engine_of(clients=1, meters=("events",), horizon=0.35)
    before = row_of(learners[0])
    finish(engine)
    assert engine.steps == 1
    found = engine.evaluator.meters[0].summary()
    assert found["drift"] == pytest.approx(float((row_of(learners[0]) - before).norm()), rel=1e-5)
    engine, learners = engine_of(
        clients=2, meters=("events",), horizon=0.35, method=PushCen(clusters=4, receivers=1, full_after=0)
    )
    kept = []
    carry = engine.network.send
    engine.network.send = lambda node, envelopes: (kept.append(envelopes[0].payload), carry(node, envelopes))
    finish(engine)
    assert engine.steps == 1  # client 0, whose weights have not moved since
    sent = decode(engine.executor.product(kept[0])[0])
    lost = torch.cat([sent[entry.name].double().flatten() for entry in learners[0].schema.entries]) - row_of(
        learners[0]
    )
    found = engine.evaluator.meters[0].summary()
    assert found["distortion"] == pytest.approx(float(lost.norm()), rel=1e-5)
    assert found["compression_shift_sum"] == pytest.approx(
        0.25 * float(lost.norm()), rel=1e-5
    )  # half of one of 2 units


def test_bytes_add_up():
    for network in (NetworkOptions(), NetworkOptions(loss=0.3), NetworkOptions(loss=0.3, notice="doubt")):
        summary = run(network=network, horizon=2.0)
        traffic, [size] = summary["traffic"], summary["message_bytes"].values()
        assert traffic["bytes_sent"] == traffic["messages_sent"] * size
        assert traffic["bytes_lost"] == traffic["messages_lost"] * size
        assert traffic["bytes_received"] + traffic["bytes_lost"] == traffic["bytes_sent"]
        found = summary["meters"]["traffic"]
        assert found["bytes_per_push"] == traffic["bytes_sent"] / summary["steps"]
        assert found["client_bytes_sent"] == traffic["bytes_sent"] / 8


def test_dropped_mass_is_booked(engine_of):
    method = PushCen(clusters=4, receivers=4, limit=2, mass="drop")
    engine, _ = engine_of(method=method, meters=("mass",), horizon=3.0)
    finish(engine)
    found = engine.evaluator.meters[0].summary()
    assert found["exact"]
    assert 0 < found["mass_destroyed"] < 1
    live = sum(node.peer.held + node.peer.waiting for node in engine.nodes) / (8 * UNIT)
    assert live + found["mass_destroyed"] == pytest.approx(1, abs=0.2)  # what waits to be destroyed is booked later


def test_measuring_changes_nothing():
    options = {
        "horizon": 2.0,
        "network": NetworkOptions(latency=0.2, loss=0.2),
        "participation": ParticipationOptions(churn=0.3, stay=1, away=0.5),
    }
    looked = run(
        meters=MeterOptions(METERS),
        evaluation=EvaluationOptions(every=0.3, global_test=True, reference=True),
        **options,
    )
    not_looked = run(meters=MeterOptions(()), evaluation=EvaluationOptions(every=2.0), **options)
    for name in ("accuracy", "loss", "events", "steps", "bytes_sent", "flops"):
        assert looked["final"][name] == not_looked["final"][name]


def test_rows_agree_with_a_plain_evaluation_of_every_client(engine_of):
    engine, learners = engine_of(
        horizon=1.0, participation=ParticipationOptions(delayed=0.25, earliest=0.2, latest=0.5)
    )
    finish(engine)
    row, found = engine.rows[-1], []
    for learner in learners.values():
        inputs, targets = learner.task.test
        with torch.no_grad():
            found.append(float((learner.model(inputs).argmax(1) == targets).double().mean()))
    mean = sum(found) / len(found)
    assert row["accuracy"] == pytest.approx(mean)
    assert row["accuracy_sd"] == pytest.approx((sum((x - mean) ** 2 for x in found) / len(found)) ** 0.5)
    assert row["accuracy_worst_tenth"] == min(found)
    late = [found[client] for client in engine.join_times]
    assert row["delayed_accuracy"] == pytest.approx(sum(late) / 2)
    assert row["delayed_best"] == pytest.approx(sum(late) / 2)  # the only time they were looked at


def test_the_best_of_delayed_clients_is_the_mean_of_each_ones_maximum(engine_of):
    people = ParticipationOptions(delayed=0.25, earliest=0.2, latest=0.5)
    options = {"evaluation": EvaluationOptions(every=0.5, per_client=True), "participation": people}
    engine, _ = engine_of(horizon=3.0, **options)
    finish(engine)
    late = [str(client) for client in engine.join_times]
    best = [max(row["clients"][name] for row in engine.rows if name in row["clients"]) for name in late]
    assert engine.rows[-1]["delayed_best"] == pytest.approx(sum(best) / len(best))
    assert engine.evaluator.summary()["delayed"]["best"] == engine.rows[-1]["delayed_best"]
    assert all(a["time"] < b["time"] for a, b in itertools.pairwise(engine.rows))
